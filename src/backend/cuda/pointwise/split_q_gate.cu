// q = x[..,0:D], gate = x[..,D:2D], per head (copy_columns.cuh). Copies are exact.
#include "sluice/ops/pointwise/split_q_gate.h"

#include "backend/cuda/pointwise/copy_columns.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::SplitQGate& op) {
  using namespace pointwise;
  with_activation(op.x.dtype, [&]<class T>() {
    constexpr int V = kChunk<T>;
    launch_copies<T, 2>(context, {{piece(op.x, 0, op.q, V), piece(op.x, op.q.dim(2), op.gate, V)}});
  });
}

}  // namespace sluice::backend::cuda
