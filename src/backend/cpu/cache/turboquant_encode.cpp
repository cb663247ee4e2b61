#include "sluice/ops/cache/turboquant_encode.h"

#include "backend/cpu/cache/encode_vectors.h"
#include "backend/cpu/runtime/row_walk.h"
#include "base/integer_cast.h"

namespace sluice::backend::cpu {

using namespace cache;

template <>
void run(Context& context, const ops::TurboquantEncode& op) {
  const std::int64_t heads = op.x.dim(1);
  const EncodeCall call{op.x.dim(0) * heads, to_size(op.x.dim(2)), op.signs, op.norm};
  encode_vectors(context, call, [&](std::int64_t i) {
    const std::int64_t t = i / heads;
    const std::int64_t h = i % heads;
    return EncodeVector{
        row_at(op.x, i), op.x.dtype, op.bits,
        static_cast<std::uint8_t*>(op.codes.data) + h * op.codes.strides[0] + t * op.codes.strides[1],
        static_cast<float*>(op.norms.data) + h * op.norms.strides[0] + t * op.norms.strides[1]};
  });
}

}  // namespace sluice::backend::cpu
