#include "sluice/ops/turboquant_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/reference/element.h"
#include "backend/reference/reference.h"
#include "backend/reference/rotation.h"
#include "backend/reference/turboquant_vector.h"
#include "ops/sequences.h"

namespace sluice::backend::reference {

namespace {

// The codes and norms of one KV head, rows in logical order.
struct Head {
  ops::ConstView codes;  // [S,bytes]
  ops::ConstView norms;  // [S]
  std::int64_t bits;
  std::int64_t ring_start;

  std::vector<double> row(std::int64_t logical) const {
    const std::int64_t slot = (ring_start + logical) % codes.dim(0);
    return decode_vector(codes[slot], get(norms, slot), bits);
  }
};

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// softmax(scale * q kT) v over logical rows [begin, end), in the rotated basis.
std::vector<double> attend(const std::vector<double>& q, const Head& keys, const Head& values, double scale,
                           std::int64_t begin, std::int64_t end) {
  std::vector<double> weights;
  for (std::int64_t row = begin; row < end; ++row) weights.push_back(scale * dot(q, keys.row(row)));
  const double largest = *std::max_element(weights.begin(), weights.end());
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - largest);
  std::vector<double> out(q.size());
  for (std::int64_t row = begin; row < end; ++row) {
    const std::vector<double> value = values.row(row);
    const double weight = weights[static_cast<std::size_t>(row - begin)] / total;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight * value[i];
  }
  return out;
}

}  // namespace

template <>
void run(const ops::TurboquantAttention& op) {
  const ops::Sequences sequences(op, op.q.dim(0));
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const ops::Sequence one = sequences[b];
    const ops::ConstView k_codes = sequences.part(op.k_codes, one);
    const ops::ConstView k_norms = sequences.part(op.k_norms, one);
    const ops::ConstView v_codes = sequences.part(op.v_codes, one);
    const ops::ConstView v_norms = sequences.part(op.v_norms, one);
    const std::int64_t ring_start = ops::Sequences::value(op.ring_start, b);
    const std::int64_t heads_per_kv = op.q.dim(1) / k_codes.dim(0);
    for (std::int64_t i = 0; i < one.tokens(); ++i) {
      const std::int64_t end = ops::Sequences::value(op.length, b) - one.tokens() + i + 1;
      const std::int64_t begin = op.window > 0 ? std::max<std::int64_t>(0, end - op.window) : 0;
      for (std::int64_t h = 0; h < op.q.dim(1); ++h) {
        const std::int64_t kv = h / heads_per_kv;
        std::vector<double> q = read_row(op.q[one.begin + i][h]);
        if (!op.rotated) rotate(q, op.signs);
        std::vector<double> out =
            attend(q, {k_codes[kv], k_norms[kv], op.k_bits, ring_start},
                   {v_codes[kv], v_norms[kv], op.v_bits, ring_start}, op.scale, begin, end);
        if (!op.rotated) rotate_back(out, op.signs);
        write_row(out, op.out[one.begin + i][h]);
      }
    }
  }
}

}  // namespace sluice::backend::reference
