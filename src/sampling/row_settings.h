// The settings of one row of a `sample` op in host memory.
#pragma once

#include "sampling/draw.h"
#include "sampling/penalty.h"
#include "sluice/ops/routing/sample.h"

namespace sluice::sampling {

struct RowSettings {
  DrawSettings draw;  // temperature 0: take the largest logit
  std::uint64_t seed = 0;
  Penalties penalties;
  std::int64_t logprobs = -1;
};

// The row's entry in the settings, or -1 if the row is left out.
std::int64_t slot_of(const ops::Sample& op, std::int64_t row);
RowSettings row_settings(const ops::Sample& op, std::int64_t slot);

}  // namespace sluice::sampling
