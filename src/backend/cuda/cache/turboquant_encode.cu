// codes = nearest levels of H(signs * x) * sqrt(D)/|x|, norms = |x| or |x| sqrt(D)/|levels|.
//
// Runs as one sequence appended to a ring of its own length. Bytes: x once, D*bits/8 + 4 written per vector.
// Codes are exact, norms within 1e-6.
#include "sluice/ops/cache/turboquant_encode.h"

#include "backend/cuda/cache/encode_rows.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::TurboquantEncode& op) {
  using namespace cache;
  const RingCall call{DeviceSequences(op.x.dim(0)),
                      SequenceNumber(),
                      static_cast<const unsigned char*>(op.signs.data),
                      to_int(op.x.dim(1)),
                      op.x.dim(0),
                      false,
                      1,
                      context.fault()};
  append_vectors<false>(
      context, call,
      RingSide(op.x, op.codes, op.norms, false, op.bits, op.norm == ops::TurboquantNorm::matched));
}

}  // namespace sluice::backend::cuda
