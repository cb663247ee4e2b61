#include "backend/host_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/large_pages.h"
#include "base/machine_peak.h"

namespace sluice::backend {

namespace {

constexpr std::size_t kAlignment = 64;

void free_aligned(void* data, std::size_t) {
  std::free(data);
}

constexpr std::size_t kSmallPage = 4096;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// A range of reserved addresses, of which the first part is accessible.
class HostRange final : public ops::GrowingBuffer {
 public:
  explicit HostRange(std::size_t most) : bytes_(rounded_up(most, kLargePage) + kLargePage) {
    mapped_ = map(nullptr, bytes_, 0);
    if (mapped_ == MAP_FAILED) fail(ErrorKind::resource, "no address space for a buffer of {} bytes", most);
    set_data(reinterpret_cast<void*>(rounded_up(reinterpret_cast<std::uintptr_t>(mapped_), kLargePage)));
  }
  ~HostRange() override { ::munmap(mapped_, bytes_); }

 private:
  static void* map(void* at, std::size_t bytes, int fixed) {
    return ::mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  }
  std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(data()) + offset; }

  // From two large pages on, opens whole large pages as allocate_in_pages() does: the system only provides a
  // large page where all of it is accessible.
  std::size_t take(std::size_t bytes) override {
    const std::size_t open = rounded_up(bytes, bytes >= 2 * kLargePage ? kLargePage : kSmallPage);
    if (open > open_) {
      if (::mprotect(at(open_), open - open_, PROT_READ | PROT_WRITE) != 0)
        fail(ErrorKind::resource, "no memory for a buffer of {} bytes", bytes);
      if (open >= 2 * kLargePage) ::madvise(data(), open, MADV_HUGEPAGE);
    } else if (open < open_) {
      map(at(open), open_ - open, MAP_FIXED);
    }
    open_ = open;
    return bytes;
  }

  std::size_t bytes_;
  void* mapped_ = nullptr;
  std::size_t open_ = 0;
};

}  // namespace

std::unique_ptr<ops::GrowingBuffer> HostBackend::reserve_range(std::size_t most) {
  return std::make_unique<HostRange>(most);
}

ops::Buffer allocate_host(std::size_t bytes) {
  void* data = allocate_in_pages(bytes, kAlignment);
  if (data == nullptr) fail(ErrorKind::resource, "no memory for a buffer of {} bytes", bytes);
  return {data, bytes, free_aligned};
}

void HostBackend::upload(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void HostBackend::clear(void* to, std::size_t bytes) {
  if (bytes > 0) std::memset(to, 0, bytes);
}

ops::Rates HostBackend::measure_rates(std::uint64_t memory) {
  ThreadPool one(1);
  return {measure_read_bandwidth(one, memory), measure_flops(one, hwy::GetChosenTarget())};
}

void HostBackend::download(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace sluice::backend
