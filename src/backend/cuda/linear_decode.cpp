#include "backend/cuda/linear_decode.h"

namespace sluice::backend::cuda {

void launch_decode(Context& context, const LinearCall& call) {
  launch_generic(context, call);
}

}  // namespace sluice::backend::cuda
