#include "sluice/ops/cache/turboquant_append.h"

#include "backend/cpu/cache/encode_vectors.h"
#include "backend/cpu/runtime/row_walk.h"
#include "base/integer_cast.h"
#include "ops/sequences.h"

namespace sluice::backend::cpu::cache {

namespace {

// Keys or values, and the ring or page of the cache into which one token's are written.
struct Side {
  const ops::ConstView& x;
  std::int64_t bits;
  ops::View codes;
  ops::View norms;
};

EncodeVector place(const Side& side, std::int64_t row, std::int64_t head, std::int64_t slot) {
  const auto& [x, bits, codes, norms] = side;
  return {row_at(x, row), x.dtype, bits,
          static_cast<std::uint8_t*>(codes.data) + head * codes.strides[0] + slot * codes.strides[1],
          static_cast<float*>(norms.data) + head * norms.strides[0] + slot * norms.strides[1]};
}

}  // namespace

}  // namespace sluice::backend::cpu::cache

namespace sluice::backend::cpu {

using namespace cache;

// Vectors are numbered by token, head, then key or value. If there are more tokens than slots, only the last
// S are written, so no two threads write the same slot.
template <>
void run(Context& context, const ops::TurboquantAppend& op) {
  const std::int64_t heads = op.k.dim(1);
  const bool ring = !op.page_table.present();
  const std::int64_t slots = op.k_norms.shape.back();
  const ops::Sequences sequences(op, op.k.dim(0));
  const EncodeCall call{op.k.dim(0) * heads * 2, to_size(op.k.dim(2)), op.signs, op.norm};
  encode_vectors(context, call, [&](std::int64_t i) {
    const std::int64_t row = i / 2;
    const std::int64_t token = row / heads;
    const std::int64_t b = sequences.of_token(token);
    const ops::Sequence one = sequences[b];
    if (ring && one.end - token > slots) return EncodeVector{};
    const std::int64_t start = ops::Sequences::value(op.start, b);
    const std::int64_t at = ring ? (start % slots + token - one.begin) % slots : start + token - one.begin;
    const auto block = [&](const ops::View& pool) { return sequences.cache(pool, one, 1).block(at); };
    const std::int64_t slot = ring ? at : at % slots;
    const Side side = i % 2 == 0 ? Side{op.k, op.k_bits, block(op.k_codes), block(op.k_norms)}
                                 : Side{op.v, op.v_bits, block(op.v_codes), block(op.v_norms)};
    return place(side, row, row % heads, slot);
  });
}

}  // namespace sluice::backend::cpu
