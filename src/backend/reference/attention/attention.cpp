#include "sluice/ops/attention/attention.h"

#include "backend/reference/attention/scores.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "base/integer_cast.h"
#include "ops/sequences.h"

namespace sluice::backend::reference::attention {

namespace {

using Cache = ops::SequenceCache<ops::ConstView>;

// One head of one token, which attends to rows [first, last].
struct Query {
  std::int64_t token;
  std::int64_t head;
  std::int64_t first;
  std::int64_t last;
};

void attend(const ops::Attention& op, const Query& query, const Cache& keys, const Cache& values) {
  const auto [token, head, first, last] = query;
  const std::int64_t kv_head = head / (op.q.dim(1) / keys.memory.dim(keys.memory.rank() - 2));
  std::vector<double> weights;
  for (std::int64_t row = first; row <= last; ++row) {
    double dot = 0;
    const ops::ConstView key = keys[row];
    for (std::int64_t i = 0; i < op.q.dim(2); ++i) dot += get(op.q, token, head, i) * get(key, kv_head, i);
    weights.push_back(op.scale * dot);
  }
  softmax(weights);
  std::vector<double> sums(to_size(op.out.dim(2)));
  for (std::int64_t row = first; row <= last; ++row) {
    const ops::ConstView value = values[row];
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weights[row - first] * get(value, kv_head, i);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) set(op.out, sums[i], token, head, i);
}

}  // namespace

}  // namespace sluice::backend::reference::attention

namespace sluice::backend::reference {

using namespace attention;

template <>
void run(const ops::Attention& op) {
  const ops::Sequences sequences(op, op.q.dim(0));
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const ops::Sequence sequence = sequences[b];
    const Cache keys = sequences.cache(op.k_cache, sequence);
    const Cache values = sequences.cache(op.v_cache, sequence);
    for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
      const std::int64_t last = ops::Sequences::value(op.start, b) + t - sequence.begin;
      const std::int64_t first = op.window > 0 && op.window <= last ? last + 1 - op.window : 0;
      for (std::int64_t head = 0; head < op.q.dim(1); ++head)
        attend(op, {t, head, first, last}, keys, values);
    }
  }
}

}  // namespace sluice::backend::reference
