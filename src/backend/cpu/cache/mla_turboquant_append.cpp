#include "sluice/ops/cache/mla_turboquant_append.h"

#include "backend/cpu/cache/append.h"
#include "backend/cpu/cache/encode_vectors.h"
#include "backend/cpu/runtime/row_walk.h"
#include "base/integer_cast.h"

namespace sluice::backend::cpu {

using namespace cache;

template <>
void run(Context& context, const ops::MlaTurboquantAppend& op) {
  const ops::Sequences sequences(op, op.kv_latent.dim(0));
  const EncodeCall call{op.kv_latent.dim(0), to_size(op.kv_latent.dim(1)), op.signs, op.norm};
  encode_vectors(context, call, [&](std::int64_t token) {
    const std::int64_t b = sequences.of_token(token);
    const ops::Sequence one = sequences[b];
    const std::int64_t row = ops::Sequences::value(op.start, b) + token - one.begin;
    const auto cache = sequences.cache(op.latent_codes, one);
    const ops::View codes = cache.block(row);
    const ops::View norms = sequences.cache(op.latent_norms, one).block(row);
    const std::int64_t at = cache.index(row);
    return EncodeVector{row_at(op.kv_latent, token), op.kv_latent.dtype, op.bits,
                        static_cast<std::uint8_t*>(codes.data) + at * codes.strides[0],
                        static_cast<float*>(norms.data) + at * norms.strides[0]};
  });
  append(context, op, op.k_pe, op.rope_cache);
}

}  // namespace sluice::backend::cpu
