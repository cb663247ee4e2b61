// The chunked form of the delta rule.
#include "backend/cuda/delta_call.cuh"

namespace sluice::backend::cuda {

void launch_chunked(Context& context, const ops::DeltaRule& op) {
  launch_recurrent(context, op);
}

}  // namespace sluice::backend::cuda
