#include "backend/host_sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "ops/draw.h"

namespace sluice::backend {

namespace {

// As integers floats have the same order, and compilers compare many of those at once.
std::int32_t ordered(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits ^ (bits >> 31 & 0x7fffffff);
}

// The index of the first of the largest.
std::size_t largest(std::span<const float> values) {
  std::int32_t most = ordered(values[0]);
  for (const float value : values) most = std::max(most, ordered(value));
  const auto best = std::bit_cast<float>(most ^ (most >> 31 & 0x7fffffff));
  return static_cast<std::size_t>(std::find(values.begin(), values.end(), best) - values.begin());
}

}  // namespace

void sample_row(const ops::Sample& op, std::int64_t row) {
  const ops::ConstView logits = op.logits[row];
  const std::span<const float> values(static_cast<const float*>(logits.data),
                                      static_cast<std::size_t>(logits.elements()));
  auto& position = static_cast<std::int32_t*>(op.positions.data)[row * op.positions.strides[0]];
  auto& id = static_cast<std::int32_t*>(op.ids.data)[row * op.ids.strides[0]];
  ++position;
  const std::size_t best = largest(values);
  id = static_cast<std::int32_t>(best);
  if (op.temperature == 0 || !std::isfinite(values[best])) return;
  id = ops::draw(values, {op.temperature, op.top_k, op.top_p, op.min_p}, static_cast<std::uint64_t>(op.seed),
                 static_cast<std::uint64_t>(position));
}

}  // namespace sluice::backend
