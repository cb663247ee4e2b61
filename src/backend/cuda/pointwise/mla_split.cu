// q_full = [q_nope | q_pe] per head, kv_pre = [kv_latent | k_pe] (copy_columns.cuh). The outputs have the
// type of q_full; columns of kv_pre are converted if their type differs, otherwise copies are exact.
#include "sluice/ops/pointwise/mla_split.h"

#include "backend/cuda/pointwise/copy_columns.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::MlaSplit& op) {
  using namespace pointwise;
  with_activation(op.q_full.dtype, [&]<class T>() {
    constexpr int V = kChunk<T>;
    launch_copies<T, 4>(
        context, {{piece(op.q_full, 0, op.q_nope, V), piece(op.q_full, op.nope, op.q_pe, V),
                   piece(op.kv_pre, 0, op.kv_latent, V), piece(op.kv_pre, op.kv_latent.dim(1), op.k_pe, V)}});
  });
}

}  // namespace sluice::backend::cuda
