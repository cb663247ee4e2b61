// Copies many parts of device memory to host memory or back. One launch moves up to 120 of them; as single
// copies, each would pay the bus's latency.
#pragma once

#include <span>

#include "backend/cuda/runtime/context.h"
#include "sluice/ops/backend.h"

namespace sluice::backend::cuda {

// Parts are contiguous in host memory. If that is not pinned, copies go through a pinned staging buffer.
class Gather {
 public:
  // `to` is written once the context's stream is synchronized.
  void from_device(Context& context, void* to, std::span<const ops::MemoryPart> from);
  // `from` must not change until then.
  void to_device(Context& context, std::span<const ops::MemoryPart> to, const void* from);

 private:
  template <class Move>
  void in_steps(std::span<const ops::MemoryPart> parts, Move&& move);

  ops::Buffer landing_;  // pinned
};

}  // namespace sluice::backend::cuda
