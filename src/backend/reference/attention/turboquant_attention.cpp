#include "sluice/ops/attention/turboquant_attention.h"

#include <algorithm>
#include <cmath>

#include "backend/reference/attention/scores.h"
#include "backend/reference/cache/rotation.h"
#include "backend/reference/cache/turboquant_vector.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "ops/sequences.h"
#include "sluice/ops/fresh_rows.h"

namespace sluice::backend::reference::attention {

namespace {

// The keys or values of one KV head that any token of the call attends to, in logical order and in the
// rotated basis.
struct Head {
  std::int64_t first = 0;  // logical row of coded[0]
  std::vector<std::vector<double>> coded;
  std::int64_t first_own = 0;  // logical row of own[0]: rows passed by the call, not quantised
  std::vector<std::vector<double>> own;

  // The row as the query at row `query` reads it.
  const std::vector<double>& row(std::int64_t logical, std::int64_t query) const {
    if (!own.empty() && logical >= ops::first_fresh_row(query, first_own)) return own[logical - first_own];
    return coded[logical - first];
  }
};

// The first row that token i of `tokens` attends to; `length` includes the last token.
std::int64_t first_seen(const ops::TurboquantAttention& op, std::int64_t length, std::int64_t tokens,
                        std::int64_t i) {
  return op.window > 0 ? std::max<std::int64_t>(0, length - tokens + i + 1 - op.window) : 0;
}

Head head(const ops::TurboquantAttention& op, const ops::Sequences& sequences, std::int64_t b,
          std::int64_t kv, bool keys) {
  const ops::Sequence one = sequences[b];
  const ops::ConstView& tokens = keys ? op.k_new : op.v_new;
  const auto codes = sequences.cache(keys ? op.k_codes : op.v_codes, one, 1);
  const auto norms = sequences.cache(keys ? op.k_norms : op.v_norms, one, 1);
  const std::int64_t ring_start = ops::Sequences::value(op.ring_start, b);
  const std::int64_t length = sequences.length(op, b);
  Head head{first_seen(op, length, one.tokens(), 0), {}, length - one.tokens(), {}};
  for (std::int64_t row = head.first; row < length; ++row) {
    const std::int64_t place = codes.pages != nullptr ? row : (ring_start + row) % codes.memory.dim(1);
    const std::int64_t index = codes.index(place);
    head.coded.push_back(cache::decode_vector(
        codes.block(place)[kv][index], get(norms.block(place), kv, index), keys ? op.k_bits : op.v_bits));
  }
  for (std::int64_t t = one.begin; tokens.present() && t < one.end; ++t) {
    head.own.push_back(cache::read_row(tokens[t][kv]));
    if (!op.rotated) cache::rotate(head.own.back(), op.signs);
  }
  return head;
}

// softmax(scale * q kT) v over logical rows [begin, end), in the rotated basis.
std::vector<double> attend(const std::vector<double>& q, const Head& keys, const Head& values, double scale,
                           std::int64_t begin, std::int64_t end) {
  std::vector<double> weights;
  for (std::int64_t row = begin; row < end; ++row) weights.push_back(scale * dot(q, keys.row(row, end - 1)));
  const double largest = *std::max_element(weights.begin(), weights.end());
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - largest);
  std::vector<double> out(q.size());
  for (std::int64_t row = begin; row < end; ++row) {
    const std::vector<double>& value = values.row(row, end - 1);
    const double weight = weights[row - begin] / total;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight * value[i];
  }
  return out;
}

}  // namespace

}  // namespace sluice::backend::reference::attention

namespace sluice::backend::reference {

using namespace attention;

template <>
void run(const ops::TurboquantAttention& op) {
  const ops::Sequences sequences(op, op.q.dim(0));
  const std::int64_t kv_heads = op.k_norms.dim(op.k_norms.rank() - 2);
  const std::int64_t heads_per_kv = op.q.dim(1) / kv_heads;
  for (std::int64_t b = 0; b < sequences.count(); ++b)
    for (std::int64_t kv = 0; kv < kv_heads; ++kv) {
      const ops::Sequence one = sequences[b];
      const Head keys = head(op, sequences, b, kv, true);
      const Head values = head(op, sequences, b, kv, false);
      for (std::int64_t i = 0; i < one.tokens(); ++i) {
        const std::int64_t length = sequences.length(op, b);
        const std::int64_t end = length - one.tokens() + i + 1;
        const std::int64_t begin = first_seen(op, length, one.tokens(), i);
        for (std::int64_t h = kv * heads_per_kv; h < (kv + 1) * heads_per_kv; ++h) {
          std::vector<double> q = cache::read_row(op.q[one.begin + i][h]);
          if (!op.rotated) cache::rotate(q, op.signs);
          std::vector<double> out = attend(q, keys, values, op.scale, begin, end);
          if (!op.rotated) cache::rotate_back(out, op.signs);
          cache::write_row(out, op.out[one.begin + i][h]);
        }
      }
    }
}

}  // namespace sluice::backend::reference
