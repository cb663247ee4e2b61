#include "backend/host_sample.h"

#include <algorithm>

#include "ops/draw.h"

namespace sluice::backend {

void sample_row(const ops::Sample& op, std::int64_t row) {
  const ops::ConstView logits = op.logits[row];
  const std::span<const float> values(static_cast<const float*>(logits.data),
                                      static_cast<std::size_t>(logits.elements()));
  auto& position = static_cast<std::int32_t*>(op.positions.data)[row * op.positions.strides[0]];
  auto& id = static_cast<std::int32_t*>(op.ids.data)[row * op.ids.strides[0]];
  ++position;
  const auto best = std::max_element(values.begin(), values.end());
  id = static_cast<std::int32_t>(best - values.begin());
  if (op.temperature == 0 || !std::isfinite(*best)) return;
  id = ops::draw(values, {op.temperature, op.top_k, op.top_p, op.min_p}, static_cast<std::uint64_t>(op.seed),
                 static_cast<std::uint64_t>(position));
}

}  // namespace sluice::backend
