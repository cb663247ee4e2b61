#include "backend/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/machine_peak.h"

namespace sluice::backend {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLarge = 2 * kHugePage;

void free_aligned(void* data, std::size_t) {
  std::free(data);
}

}  // namespace

ops::Buffer allocate_host(std::size_t bytes) {
  const std::size_t alignment = bytes < kLarge ? kAlignment : kHugePage;
  void* data = nullptr;
  if (::posix_memalign(&data, alignment, std::max(bytes, kAlignment)) != 0)
    fail(ErrorKind::resource, "no memory for a buffer of {} bytes", bytes);
  // Weights and caches are read from end to end: walking page tables every 4 KiB would cost a part of that
  // speed. What is left behind the last whole large page stays in small ones.
  if (alignment == kHugePage) ::madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return {data, bytes, free_aligned};
}

void HostBackend::upload(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

ops::Rates HostBackend::measure_rates() {
  ThreadPool one(1);
  return {measure_read_bandwidth(one), measure_flops(one)};
}

void HostBackend::download(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace sluice::backend
