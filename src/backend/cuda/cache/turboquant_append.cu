// Token i of a sequence is encoded into slot (start+i) mod S of its ring.
//
// If several tokens get the same slot, only the last one is written. Bytes: k and v once, D*bits/8 + 4 per
// vector written. Codes are exact, norms within 1e-6.
#include "sluice/ops/cache/turboquant_append.h"

#include "backend/cuda/cache/encode_rows.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::TurboquantAppend& op) {
  using namespace cache;
  const RingCall call = ring_call(context, op);
  const GroupSides sides = ring_sides(op);
  if (sides.at[0].grouped() && sides.at[1].grouped()) return append_groups(context, call, sides, 2);
  for (const RingSide& side : sides.at) append_vectors<true>(context, call, side);
}

}  // namespace sluice::backend::cuda
