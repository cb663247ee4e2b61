// Token i of a sequence is encoded into slot (start+i) mod S of its ring.
//
// Of tokens that fall on the same slot only the last is written. Bytes: k and v once, D*bits/8 + 4 a vector
// out. Codes are exact, norms within 1e-6.
#include "sluice/ops/turboquant_append.h"

#include "backend/cuda/encode_rows.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::TurboquantAppend& op) {
  const bool pooled = op.seq_starts.present();
  const bool matched = op.norm == ops::TurboquantNorm::matched;
  const RingCall call{DeviceSequences(op, op.k.dim(0)),
                      SequenceNumber(op.start),
                      static_cast<const unsigned char*>(op.signs.data),
                      static_cast<int>(op.k.dim(1)),
                      op.k_codes.dim(op.k_codes.rank() - 2),
                      true,
                      pooled ? op.k_codes.dim(0) : 1,
                      context.fault()};
  const RingSide keys(op.k, op.k_codes, op.k_norms, pooled, op.k_bits, matched);
  const RingSide values(op.v, op.v_codes, op.v_norms, pooled, op.v_bits, matched);
  if (keys.grouped() && values.grouped()) return append_groups(context, call, {{keys, values}}, 2);
  append_vectors<true>(context, call, keys);
  append_vectors<true>(context, call, values);
}

}  // namespace sluice::backend::cuda
