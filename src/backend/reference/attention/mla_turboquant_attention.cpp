#include "sluice/ops/attention/mla_turboquant_attention.h"

#include "backend/reference/attention/scores.h"
#include "backend/reference/cache/rotation.h"
#include "backend/reference/cache/turboquant_vector.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "ops/sequences.h"
#include "sluice/ops/fresh_rows.h"

namespace sluice::backend::reference::attention {

namespace {

// The latents of a sequence's rows, decoded.
std::vector<std::vector<double>> decoded(const ops::MlaTurboquantAttention& op,
                                         const ops::Sequences& sequences, std::int64_t b) {
  const ops::Sequence one = sequences[b];
  const auto codes = sequences.cache(op.latent_codes, one);
  const auto norms = sequences.cache(op.latent_norms, one);
  const std::int64_t start = ops::Sequences::value(op.start, b);
  std::vector<std::vector<double>> rows;
  for (std::int64_t row = 0; row < start + one.tokens(); ++row) {
    rows.push_back(cache::decode_vector(codes[row], get(norms.block(row), norms.index(row)), op.bits));
    cache::rotate_back(rows.back(), op.signs);
  }
  return rows;
}

}  // namespace

}  // namespace sluice::backend::reference::attention

namespace sluice::backend::reference {

using namespace attention;

template <>
void run(const ops::MlaTurboquantAttention& op) {
  const ops::Sequences sequences(op, op.q_latent.dim(0));
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const ops::Sequence one = sequences[b];
    if (one.tokens() == 0) continue;
    const std::int64_t start = ops::Sequences::value(op.start, b);
    const auto coded = decoded(op, sequences, b);
    std::vector<std::vector<double>> own;
    for (std::int64_t t = one.begin; op.latent_new.present() && t < one.end; ++t)
      own.push_back(cache::read_row(op.latent_new[t]));
    const auto rope = sequences.cache(op.rope_cache, one);
    for (std::int64_t t = one.begin; t < one.end; ++t)
      for (std::int64_t h = 0; h < op.q_latent.dim(1); ++h) {
        const std::vector<double> q = cache::read_row(op.q_latent[t][h]);
        const std::vector<double> q_pe = cache::read_row(op.q_pe[t][h]);
        const std::int64_t seen = start + t - one.begin + 1;
        const std::int64_t fresh = own.empty() ? seen : ops::first_fresh_row(seen - 1, start);
        const auto latent = [&](std::int64_t row) -> const std::vector<double>& {
          return row >= fresh ? own[row - start] : coded[row];
        };
        std::vector<double> weights;
        for (std::int64_t row = 0; row < seen; ++row)
          weights.push_back(op.scale * (dot(q, latent(row)) + dot(q_pe, cache::read_row(rope[row]))));
        softmax(weights);
        std::vector<double> out(q.size());
        for (std::int64_t row = 0; row < seen; ++row)
          for (std::size_t i = 0; i < out.size(); ++i) out[i] += weights[row] * latent(row)[i];
        cache::write_row(out, op.out[t][h]);
      }
  }
}

}  // namespace sluice::backend::reference
