#include "sluice/ops/mla_attention.h"

#include "backend/reference/attention/softmax.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "ops/sequences.h"

namespace sluice::backend::reference::attention {

namespace {

// One head of one token over rows [0, last] of the latents, which are keys and values at once.
void attend(const ops::MlaAttention& op, std::int64_t token, std::int64_t head, const ops::ConstView& latents,
            const ops::ConstView& ropes, std::int64_t last) {
  std::vector<double> weights;
  for (std::int64_t row = 0; row <= last; ++row) {
    double dot = 0;
    for (std::int64_t i = 0; i < latents.dim(1); ++i)
      dot += get(op.q_latent, token, head, i) * get(latents, row, i);
    for (std::int64_t i = 0; i < ropes.dim(1); ++i) dot += get(op.q_pe, token, head, i) * get(ropes, row, i);
    weights.push_back(op.scale * dot);
  }
  softmax(weights);
  for (std::int64_t i = 0; i < latents.dim(1); ++i) {
    double sum = 0;
    for (std::int64_t row = 0; row <= last; ++row)
      sum += weights[static_cast<std::size_t>(row)] * get(latents, row, i);
    set(op.out, sum, token, head, i);
  }
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
    const ops::ConstView latents = sequences.part(op.latent_cache, sequence);
    const ops::ConstView ropes = sequences.part(op.rope_cache, sequence);
    for (std::int64_t t = sequence.begin; t < sequence.end; ++t)
      for (std::int64_t head = 0; head < op.q_latent.dim(1); ++head)
        attend(op, t, head, latents, ropes, ops::Sequences::value(op.start, b) + t - sequence.begin);
  }
}

}  // namespace sluice::backend::reference
