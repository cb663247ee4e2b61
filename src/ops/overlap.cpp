#include "ops/overlap.h"

namespace sluice::ops {

namespace {

// Bytes from the first element to the end of the last one, for dimensions first_dim and up.
std::int64_t extent(const ConstView& view, int first_dim) {
  std::int64_t last = 0;
  for (int d = first_dim; d < view.rank(); ++d) last += (view.shape[d] - 1) * view.strides[d];
  return (last + 1) * static_cast<std::int64_t>(size_bytes(view.dtype));
}

}  // namespace

bool overlaps(const ConstView& a, const ConstView& b) {
  if (!a.present() || !b.present() || a.elements() == 0 || b.elements() == 0) return false;
  const auto begin_a = reinterpret_cast<std::intptr_t>(a.data);
  const auto begin_b = reinterpret_cast<std::intptr_t>(b.data);
  if (begin_a + extent(a, 0) <= begin_b || begin_b + extent(b, 0) <= begin_a) return false;
  // Columns of the same rows: compare within one row's stride.
  if (a.rank() >= 2 && b.rank() >= 2) {
    const std::int64_t period = a.strides[0] * static_cast<std::int64_t>(size_bytes(a.dtype));
    const std::int64_t row_a = extent(a, 1);
    const std::int64_t row_b = extent(b, 1);
    if (period == b.strides[0] * static_cast<std::int64_t>(size_bytes(b.dtype)) && row_a + row_b <= period) {
      const std::int64_t offset = ((begin_b - begin_a) % period + period) % period;
      if (offset >= row_a && offset + row_b <= period) return false;
    }
  }
  return true;
}

bool identical(const ConstView& a, const ConstView& b) {
  return a.data == b.data && a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
}

}  // namespace sluice::ops
