#include "sluice/ops/cache/mla_turboquant_append.h"

#include "backend/reference/cache/append.h"
#include "backend/reference/cache/turboquant_vector.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

using namespace cache;

template <>
void run(const ops::MlaTurboquantAppend& op) {
  const ops::Sequences sequences(op, op.kv_latent.dim(0));
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const ops::Sequence one = sequences[b];
    const auto codes = sequences.cache(op.latent_codes, one);
    const auto norms = sequences.cache(op.latent_norms, one);
    const std::int64_t start = ops::Sequences::value(op.start, b);
    for (std::int64_t i = 0; i < one.tokens(); ++i) {
      const ops::View block = norms.block(start + i);
      encode_vector(op.kv_latent[one.begin + i], op.signs, op.bits, op.norm, codes[start + i],
                    static_cast<float*>(block.data)[offset(block, norms.index(start + i))]);
    }
  }
  append(op, op.k_pe, op.rope_cache);
}

}  // namespace sluice::backend::reference
