// Whether two views share memory.
#pragma once

#include "sluice/ops/view.h"

namespace sluice::ops {

// Exact for views that are interleaved rows of one buffer (columns of a wider row); otherwise by address
// range.
bool overlaps(const ConstView& a, const ConstView& b);
// Whether both have the same elements in the same order.
bool identical(const ConstView& a, const ConstView& b);

}  // namespace sluice::ops
