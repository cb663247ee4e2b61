// Token i of a sequence is encoded into slot (start+i) mod S of its ring.
//
// One warp a vector, keys and values in two launches. Of tokens that fall on the same slot only the last is
// written. Bytes: k and v once, D*bits/8 + 4 a vector out.
#include "sluice/ops/turboquant_append.h"

#include "backend/cuda/encode_rows.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::TurboquantAppend& op) {
  encode_rows<true>(context, op, op.k, op.k_codes, op.k_norms, op.k_bits, true);
  encode_rows<true>(context, op, op.v, op.v_codes, op.v_norms, op.v_bits, true);
}

}  // namespace sluice::backend::cuda
