#include "sluice/ops/attention.h"

#include "backend/reference/attention/softmax.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "ops/sequences.h"

namespace sluice::backend::reference::attention {

namespace {

// One head of one token over rows [first, last] of its keys and values.
void attend(const ops::Attention& op, std::int64_t token, std::int64_t head, const ops::ConstView& keys,
            const ops::ConstView& values, std::int64_t first, std::int64_t last) {
  const std::int64_t kv_head = head / (op.q.dim(1) / keys.dim(1));
  std::vector<double> weights;
  for (std::int64_t row = first; row <= last; ++row) {
    double dot = 0;
    for (std::int64_t i = 0; i < op.q.dim(2); ++i)
      dot += get(op.q, token, head, i) * get(keys, row, kv_head, i);
    weights.push_back(op.scale * dot);
  }
  softmax(weights);
  for (std::int64_t i = 0; i < op.out.dim(2); ++i) {
    double sum = 0;
    for (std::int64_t row = first; row <= last; ++row)
      sum += weights[static_cast<std::size_t>(row - first)] * get(values, row, kv_head, i);
    set(op.out, sum, token, head, i);
  }
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
    const ops::ConstView keys = sequences.part(op.k_cache, sequence);
    const ops::ConstView values = sequences.part(op.v_cache, sequence);
    for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
      const std::int64_t last = ops::Sequences::value(op.start, b) + t - sequence.begin;
      const std::int64_t first = op.window > 0 && op.window <= last ? last + 1 - op.window : 0;
      for (std::int64_t head = 0; head < op.q.dim(1); ++head) attend(op, t, head, keys, values, first, last);
    }
  }
}

}  // namespace sluice::backend::reference
