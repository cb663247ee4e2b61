#include "backend/host_sample.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "ops/draw.h"

namespace sluice::backend {

namespace {

// The index of the first of the largest. Sixteen numbers at a time, then the place of what was found.
std::size_t largest(std::span<const float> values) {
  constexpr std::size_t kLanes = 16;
  float most[kLanes];
  std::fill_n(most, kLanes, values[0]);
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      most[lane] = values[i + lane] > most[lane] ? values[i + lane] : most[lane];
  for (; i < values.size(); ++i) most[0] = values[i] > most[0] ? values[i] : most[0];
  const float best = *std::max_element(most, most + kLanes);
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
