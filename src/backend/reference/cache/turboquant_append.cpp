#include "sluice/ops/cache/turboquant_append.h"

#include "backend/reference/cache/turboquant_vector.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "ops/sequences.h"

namespace sluice::backend::reference::cache {

namespace {

struct Cache {
  ops::SequenceCache<ops::View> codes;  // [KH,S,bytes]
  ops::SequenceCache<ops::View> norms;  // [KH,S]
  std::int64_t bits;
};

void append(const ops::TurboquantAppend& op, const ops::ConstView& x, const Cache& cache,
            const ops::Sequence& tokens, std::int64_t start) {
  const bool ring = cache.codes.pages == nullptr;
  const std::int64_t slots = cache.codes.memory.dim(1);
  for (std::int64_t i = 0; i < tokens.tokens(); ++i) {
    const std::int64_t place = ring ? (start % slots + i) % slots : start + i;
    const std::int64_t index = cache.codes.index(place);
    const ops::View codes = cache.codes.block(place);
    const ops::View norms = cache.norms.block(place);
    for (std::int64_t h = 0; h < x.dim(1); ++h)
      encode_vector(x[tokens.begin + i][h], op.signs, cache.bits, op.norm, codes[h][index],
                    static_cast<float*>(norms.data)[offset(norms, h, index)]);
  }
}

}  // namespace

}  // namespace sluice::backend::reference::cache

namespace sluice::backend::reference {

using namespace cache;

template <>
void run(const ops::TurboquantAppend& op) {
  const ops::Sequences sequences(op, op.k.dim(0));
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const ops::Sequence one = sequences[b];
    const std::int64_t start = ops::Sequences::value(op.start, b);
    append(op, op.k, {sequences.cache(op.k_codes, one, 1), sequences.cache(op.k_norms, one, 1), op.k_bits},
           one, start);
    append(op, op.v, {sequences.cache(op.v_codes, one, 1), sequences.cache(op.v_norms, one, 1), op.v_bits},
           one, start);
  }
}

}  // namespace sluice::backend::reference
