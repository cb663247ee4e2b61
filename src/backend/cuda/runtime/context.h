// What a CUDA op may use: the stream it runs on, the device's properties, scratch memory, and the place where
// kernels report bad contents.
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

// Throws sluice::Error for anything but success; `what` names the attempt.
void check(cudaError_t status, const char* what);
// For types that the contract admits and a kernel does not: a defect. (fmt does not compile in CUDA code.)
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
  // Device memory of the calling op, aligned to 256 bytes, undefined contents; valid until the next op asks.
  // It grows and stays. Smaller blocks that it outgrew are kept: recorded programs may still use them.
  std::byte* scratch(std::size_t bytes);
  // Zeroed once at the start; kernels that count in it leave it zero behind (tickets of split reductions).
  int* counters() const { return counters_; }
  static constexpr int kCounters = 1 << 16;
  // A device copy of small constant contents, made once for equal contents and kept as long as the context.
  const std::byte* resident(std::span<const std::byte> contents);
  // Written by kernels through report().
  Fault* fault() const { return fault_; }

  ops::Phase phase = ops::Phase::automatic;
  // Whether an op of `tokens` tokens runs its decode kernels.
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
// Host memory that the device copies from and to while the host goes on.
ops::Buffer allocate_pinned(std::size_t bytes);

// One file an op, each defining run<Op>.
template <class Op>
void run(Context& context, const Op& op);

}  // namespace sluice::backend::cuda
