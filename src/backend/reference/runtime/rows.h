// Iterating over the rows (last dimension) of tensors of any rank.
#pragma once

#include "sluice/ops/view.h"

namespace sluice::backend::reference {

// The index of one row: all dimensions but the last.
class RowIndex {
 public:
  RowIndex(const ops::Shape& shape, std::int64_t linear) {
    for (int d = shape.rank() - 2; d >= 0; --d) {
      index_[d] = linear % shape[d];
      linear /= shape[d];
    }
  }
  // The same row of a tensor with the same leading dimensions, as a view of rank 1.
  template <class Pointer>
  ops::BasicView<Pointer> of(const ops::BasicView<Pointer>& view) const {
    ops::BasicView<Pointer> row = view;
    if (view.rank() == 1) return row;
    for (int d = 0; d + 1 < view.rank(); ++d) row = row.rank() > 1 ? row[index_[d]] : row;
    return row;
  }

 private:
  std::array<std::int64_t, ops::kMaxRank> index_{};
};

template <class F>
void for_each_row(const ops::Shape& shape, F&& f) {
  const std::int64_t rows = shape.elements() / (shape.back() == 0 ? 1 : shape.back());
  for (std::int64_t r = 0; r < rows; ++r) f(RowIndex(shape, r));
}

}  // namespace sluice::backend::reference
