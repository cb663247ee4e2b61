// The sample op on rows in host memory.
#pragma once

#include "sluice/ops/sample.h"

namespace sluice::backend {

void sample_row(const ops::Sample& op, std::int64_t row);

}  // namespace sluice::backend
