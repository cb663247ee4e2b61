// What a CUDA op may use: its stream, the device's properties, scratch memory, and the fault record for
// kernels that find invalid contents.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/runtime/fault.h"
#include "sluice/ops/buffer.h"
#include "sluice/ops/dtype.h"
#include "sluice/ops/phase.h"

namespace sluice::backend::cuda {

// Throws sluice::Error unless `status` is success; `what` names the attempt.
void check(cudaError_t status, const char* what);
// For types that the contract allows but a kernel does not handle: a bug. (fmt does not compile in CUDA
// code.)
[[noreturn]] void refuse_type(ops::DType type);

struct DeviceInfo {
  int index = 0;
  int multiprocessors = 0;
  int compute_capability = 0;  // 90 for 9.0
  std::size_t shared_bytes_per_block = 0;
  std::size_t memory_bytes = 0;
  std::string name;
};

class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  cudaStream_t stream() const { return stream_; }
  const DeviceInfo& device() const { return device_; }
  // Device memory for the calling op, aligned to 256 bytes, contents undefined; valid until the next op calls
  // this. It only grows. Smaller blocks that it replaces are kept, because recorded programs may still use
  // them.
  std::byte* scratch(std::size_t bytes);
  // Zeroed at the start; kernels that count in it reset it to zero (tickets of split reductions).
  int* counters() const { return counters_; }
  static constexpr int kCounters = 1 << 16;
  // A device copy of small constant contents, made once per content and kept for the lifetime of the context.
  const std::byte* resident(std::span<const std::byte> contents);
  // Written by kernels through report().
  Fault* fault() const { return fault_; }

  ops::Phase phase = ops::Phase::automatic;
  // Whether an op with `tokens` tokens runs its decode kernels.
  bool decode_class(std::int64_t tokens) const {
    return phase == ops::Phase::decode || (phase == ops::Phase::automatic && tokens <= kDecodeTokens);
  }
  static constexpr std::int64_t kDecodeTokens = 16;

 private:
  DeviceInfo device_;
  cudaStream_t stream_ = nullptr;
  Fault* fault_ = nullptr;  // pinned host memory that the device writes to
  int* counters_ = nullptr;
  std::vector<ops::Buffer> scratch_;
  std::map<std::string, ops::Buffer> resident_;  // by contents
};

ops::Buffer allocate_device(std::size_t bytes);
// Host memory that the device copies from and to asynchronously.
ops::Buffer allocate_pinned(std::size_t bytes);

// Each op has a file that defines run<Op>.
template <class Op>
void run(Context& context, const Op& op);

}  // namespace sluice::backend::cuda
