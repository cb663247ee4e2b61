#include "backend/cuda/runtime/context.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::backend::cuda {

namespace {

// Errors after which every CUDA call of this process fails, according to CUDA's documentation.
bool loses_device(cudaError_t status) {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // a failed launch must not fail the next one
  if (loses_device(status))
    fail(ErrorKind::resource,
         "CUDA: the device was lost while {}: {} ({}); this process cannot use it any more, a new one can",
         what, cudaGetErrorString(status), cudaGetErrorName(status));
  const ErrorKind kind = status == cudaErrorInvalidValue || status == cudaErrorInvalidConfiguration
                             ? ErrorKind::internal
                             : ErrorKind::resource;
  fail(kind, "CUDA: {} failed: {}", what, cudaGetErrorString(status));
}

void refuse_type(ops::DType type) {
  fail(ErrorKind::internal, "CUDA: no kernel supports {} here", ops::name(type));
}

namespace {

void free_device(void* data, std::size_t) {
  cudaFree(data);
}

DeviceInfo current_device() {
  DeviceInfo info;
  check(cudaGetDevice(&info.index), "finding a device");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, info.index), "reading the device's properties");
  info.multiprocessors = properties.multiProcessorCount;
  info.compute_capability = 10 * properties.major + properties.minor;
  info.shared_bytes_per_block = properties.sharedMemPerBlockOptin;
  info.memory_bytes = properties.totalGlobalMem;
  info.name = properties.name;
  if (info.compute_capability < 80)
    fail(ErrorKind::unsupported, "{} has compute capability {}.{}, sluice needs 8.0 or later", info.name,
         properties.major, properties.minor);
  return info;
}

}  // namespace

ops::Buffer allocate_pinned(std::size_t bytes) {
  void* data = nullptr;
  check(cudaMallocHost(&data, bytes), "allocating pinned memory");
  return {data, bytes, [](void* memory, std::size_t) { cudaFreeHost(memory); }};
}

ops::Buffer allocate_device(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, std::max<std::size_t>(bytes, 256));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0;
    std::size_t total = 0;
    cudaMemGetInfo(&free, &total);
    fail(ErrorKind::resource, "no device memory for a buffer of {} bytes: {} of {} are free", bytes, free,
         total);
  }
  check(status, "allocating device memory");
  return {data, bytes, free_device};
}

Context::Context() : device_(current_device()) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  void* pinned = nullptr;
  check(cudaHostAlloc(&pinned, sizeof(Fault), cudaHostAllocMapped), "allocating pinned memory");
  fault_ = new (pinned) Fault{};
  scratch_.push_back(allocate_device(kCounters * sizeof(int)));
  counters_ = static_cast<int*>(scratch_.back().data());
  check(cudaMemset(counters_, 0, kCounters * sizeof(int)), "clearing counters");
  scratch_.push_back(allocate_device(std::size_t{1} << 20));
}

Context::~Context() {
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
  cudaFreeHost(fault_);
}

std::byte* Context::scratch(std::size_t bytes) {
  if (scratch_.back().bytes() < bytes)
    scratch_.push_back(allocate_device(std::max(bytes, 2 * scratch_.back().bytes())));
  return static_cast<std::byte*>(scratch_.back().data());
}

const std::byte* Context::resident(std::span<const std::byte> contents) {
  std::string key(reinterpret_cast<const char*>(contents.data()), contents.size());
  const auto known = resident_.find(key);
  if (known != resident_.end()) return static_cast<const std::byte*>(known->second.data());
  ops::Buffer copy = allocate_device(contents.size());
  // The ops' stream may be recording, and a recorded copy would read the host memory again at each run.
  cudaStream_t apart = nullptr;
  check(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking), "making a stream");
  cudaError_t status =
      cudaMemcpyAsync(copy.data(), key.data(), contents.size(), cudaMemcpyHostToDevice, apart);
  if (status == cudaSuccess) status = cudaStreamSynchronize(apart);
  cudaStreamDestroy(apart);
  check(status, "copying to the device");
  return static_cast<const std::byte*>(
      resident_.emplace(std::move(key), std::move(copy)).first->second.data());
}

}  // namespace sluice::backend::cuda
