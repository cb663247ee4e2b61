// The `sample` op on one row in host memory.
#pragma once

#include "sluice/ops/routing/sample.h"

namespace sluice::sampling {

void sample_row(const ops::Sample& op, std::int64_t row);

}  // namespace sluice::sampling
