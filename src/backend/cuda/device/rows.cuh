// The rows (last dimension) of a strided view of any rank, numbered in row-major order.
#pragma once

#include "sluice/ops/view.h"

namespace sluice::backend::cuda {

struct RowOffsets {
  int outer = 0;  // dimensions before the last
  long long dims[ops::kMaxRank - 1] = {};
  long long strides[ops::kMaxRank - 1] = {};
  long long count = 1;
  static constexpr long long kFew = 0x7fffffff;

  // Dimensions that are contiguous with one another are merged, so most views need no division.
  template <class AnyView>
  explicit RowOffsets(const AnyView& view) {
    for (int d = 0; d < view.rank() - 1; ++d) {
      count *= view.dim(d);
      if (outer > 0 && strides[outer - 1] == view.strides[d] * view.dim(d)) {
        dims[outer - 1] *= view.dim(d);
        strides[outer - 1] = view.strides[d];
      } else {
        dims[outer] = view.dim(d);
        strides[outer++] = view.strides[d];
      }
    }
  }
  // Elements between the view's start and row i.
  __device__ __forceinline__ long long operator[](long long i) const {
    if (outer <= 1) return i * strides[0];
    long long offset = 0;
    if (count <= kFew) {  // a 64-bit division is several times slower
      auto row = static_cast<unsigned>(i);
      for (int d = outer - 1; d > 0; --d) {
        const auto dim = static_cast<unsigned>(dims[d]);
        offset += row % dim * strides[d];
        row /= dim;
      }
      return offset + row * strides[0];
    }
    for (int d = outer - 1; d > 0; --d) {
      offset += i % dims[d] * strides[d];
      i /= dims[d];
    }
    return offset + i * strides[0];
  }
};

}  // namespace sluice::backend::cuda
