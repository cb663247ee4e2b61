#include "backend/cuda/runtime/growing.h"

#include <cuda.h>

#include <algorithm>
#include <vector>

#include "backend/cuda/runtime/context.h"
#include "backend/make.h"
#include "base/error.h"

namespace sluice::backend::cuda {

namespace {

// The driver's functions are looked up at run time, so that programs also start on machines without the
// driver.
template <class Function>
Function* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  constexpr unsigned kSince = 10020;
  check(cudaGetDriverEntryPointByVersion(name, &found, kSince, cudaEnableDefault, &result),
        "asking the driver for a function");
#else
  check(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result),
        "asking the driver for a function");
#endif
  if (found == nullptr) fail(ErrorKind::unsupported, "the NVIDIA driver has no {}", name);
  return reinterpret_cast<Function*>(found);
}

struct Driver {
  decltype(cuMemAddressReserve)* reserve =
      driver_function<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(cuMemAddressFree)* free = driver_function<decltype(cuMemAddressFree)>("cuMemAddressFree");
  decltype(cuMemCreate)* create = driver_function<decltype(cuMemCreate)>("cuMemCreate");
  decltype(cuMemRelease)* release = driver_function<decltype(cuMemRelease)>("cuMemRelease");
  decltype(cuMemMap)* map = driver_function<decltype(cuMemMap)>("cuMemMap");
  decltype(cuMemUnmap)* unmap = driver_function<decltype(cuMemUnmap)>("cuMemUnmap");
  decltype(cuMemSetAccess)* set_access = driver_function<decltype(cuMemSetAccess)>("cuMemSetAccess");
};

const Driver& driver() {
  static const Driver functions;
  return functions;
}

constexpr std::size_t kUnit = kCudaTraits.growth;

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

class DeviceRange final : public ops::GrowingBuffer {
 public:
  DeviceRange(int device, std::size_t most) : bytes_(std::max(rounded_up(most), kUnit)) {
    location_.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location_.id = device;
    if (driver().reserve(&first_, bytes_, kUnit, 0, 0) != CUDA_SUCCESS)
      fail(ErrorKind::resource, "no device address space for a buffer of {} bytes", most);
    set_data(reinterpret_cast<void*>(first_));
  }
  ~DeviceRange() override {
    shrink(0);
    driver().free(first_, bytes_);
  }

 private:
  std::size_t taken() const { return ends_.empty() ? 0 : ends_.back(); }

  std::size_t take(std::size_t bytes) override {
    bytes < taken() ? shrink(bytes) : grow(rounded_up(bytes));
    return taken();
  }

  void grow(std::size_t end) {
    const std::size_t begin = taken();
    if (end == begin) return;
    CUmemAllocationProp kind{};
    kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.location = location_;
    CUmemGenericAllocationHandle memory = 0;
    if (driver().create(&memory, end - begin, &kind, 0) != CUDA_SUCCESS)
      fail(ErrorKind::resource, "no device memory for a buffer of {} bytes", end);
    const CUresult mapped = driver().map(first_ + begin, end - begin, 0, memory, 0);
    driver().release(memory);  // freed once it is unmapped
    if (mapped != CUDA_SUCCESS) fail(ErrorKind::resource, "cannot map {} bytes of device memory", end);
    ends_.push_back(end);
    CUmemAccessDesc access{};
    access.location = location_;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (driver().set_access(first_ + begin, end - begin, &access, 1) == CUDA_SUCCESS) return;
    shrink(begin);
    fail(ErrorKind::resource, "cannot access {} bytes of device memory", end);
  }

  // Releases whole pieces beyond `kept` bytes.
  void shrink(std::size_t kept) {
    while (!ends_.empty()) {
      const std::size_t begin = ends_.size() > 1 ? ends_[ends_.size() - 2] : 0;
      if (begin < kept) return;
      driver().unmap(first_ + begin, ends_.back() - begin);
      ends_.pop_back();
    }
  }

  std::size_t bytes_;
  CUmemLocation location_{};
  CUdeviceptr first_ = 0;
  std::vector<std::size_t> ends_;  // of pieces, which are contiguous
};

}  // namespace

std::unique_ptr<ops::GrowingBuffer> reserve_device(int device, std::size_t most) {
  return std::make_unique<DeviceRange>(device, most);
}

}  // namespace sluice::backend::cuda
