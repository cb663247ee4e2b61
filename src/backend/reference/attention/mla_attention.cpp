#include "sluice/ops/attention/mla_attention.h"

#include "backend/reference/attention/scores.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "base/integer_cast.h"
#include "ops/sequences.h"

namespace sluice::backend::reference::attention {

namespace {

using Cache = ops::SequenceCache<ops::ConstView>;

// One head of one token over rows [0, last] of the latents, which are both keys and values.
void attend(const ops::MlaAttention& op, std::int64_t token, std::int64_t head, const Cache& latents,
            const Cache& ropes, std::int64_t last) {
  std::vector<double> weights;
  for (std::int64_t row = 0; row <= last; ++row) {
    double dot = 0;
    const ops::ConstView latent = latents[row];
    const ops::ConstView rope = ropes[row];
    for (std::int64_t i = 0; i < latent.dim(0); ++i) dot += get(op.q_latent, token, head, i) * get(latent, i);
    for (std::int64_t i = 0; i < rope.dim(0); ++i) dot += get(op.q_pe, token, head, i) * get(rope, i);
    weights.push_back(op.scale * dot);
  }
  softmax(weights);
  std::vector<double> sums(to_size(op.out.dim(2)));
  for (std::int64_t row = 0; row <= last; ++row) {
    const ops::ConstView latent = latents[row];
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weights[row] * get(latent, i);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) set(op.out, sums[i], token, head, i);
}

}  // namespace

}  // namespace sluice::backend::reference::attention

namespace sluice::backend::reference {

using namespace attention;

template <>
void run(const ops::MlaAttention& op) {
  const ops::Sequences sequences(op, op.q_latent.dim(0));
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const ops::Sequence sequence = sequences[b];
    const Cache latents = sequences.cache(op.latent_cache, sequence);
    const Cache ropes = sequences.cache(op.rope_cache, sequence);
    for (std::int64_t t = sequence.begin; t < sequence.end; ++t)
      for (std::int64_t head = 0; head < op.q_latent.dim(1); ++head)
        attend(op, t, head, latents, ropes, ops::Sequences::value(op.start, b) + t - sequence.begin);
  }
}

}  // namespace sluice::backend::reference
