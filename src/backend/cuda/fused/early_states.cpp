// A delta_step that follows a product: the product writes no states, so they are read while it runs. Whatever
// wrote them is at least two launches back and was complete when the product began.
#include "backend/cuda/delta/delta_step.h"
#include "backend/cuda/fused/recorded.h"

namespace sluice::backend::cuda::fused {

std::size_t early_states(Context& context, const Place& place) {
  const auto* step = place.next<ops::DeltaStep>();
  if (step == nullptr || place.next<ops::Matmul>(-1) == nullptr) return 0;
  delta::run_step(context, *step, true);
  return 1;
}

}  // namespace sluice::backend::cuda::fused
