#include "backend/host_memory.h"

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

}  // namespace

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
  return {measure_read_bandwidth(one, memory), measure_flops(one)};
}

void HostBackend::download(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace sluice::backend
