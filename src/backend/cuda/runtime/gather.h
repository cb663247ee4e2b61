// Many parts of the device's memory to the host's or back. One launch moves up to a hundred of them: as
// copies one by one they would each wait for the bus.
#pragma once

#include <span>

#include "backend/cuda/runtime/context.h"
#include "sluice/ops/backend.h"

namespace sluice::backend::cuda {

// Parts lie one behind the other in the host's memory. Where that is not pinned, they go through memory that
// is.
class Gather {
 public:
  // `to` is written once the context's stream is synchronized.
  void from_device(Context& context, void* to, std::span<const ops::MemoryPart> from);
  // `from` must stay as it is until then.
  void to_device(Context& context, std::span<const ops::MemoryPart> to, const void* from);

 private:
  template <class Move>
  void in_steps(std::span<const ops::MemoryPart> parts, Move&& move);

  ops::Buffer landing_;  // pinned
};

}  // namespace sluice::backend::cuda
