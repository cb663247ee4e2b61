// Conditions that the patterns share, on the rows of one token.
#pragma once

#include <cstdint>

#include "backend/cuda/linear/decode/input_norm.h"
#include "backend/cuda/linear/decode/int4_plan.h"
#include "base/integer_cast.h"
#include "sluice/ops/view.h"

namespace sluice::backend::cuda::fused {

// BF16 [1,n], aligned to 16 bytes and in whole 16-byte chunks.
template <class AnyView>
bool is_row(const AnyView& view) {
  return view.dtype == ops::DType::bf16 && view.rank() == 2 && view.dim(0) == 1 && view.dim(1) % 8 == 0 &&
         reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
}

// Whether two rows do not overlap in memory.
inline bool apart(const ops::ConstView& a, const ops::ConstView& b) {
  const auto first = reinterpret_cast<std::uintptr_t>(a.data);
  const auto second = reinterpret_cast<std::uintptr_t>(b.data);
  return first + to_size(a.dim(1)) * ops::size_bytes(a.dtype) <= second ||
         second + to_size(b.dim(1)) * ops::size_bytes(b.dtype) <= first;
}

// Whether the decode kernels can normalise such a row themselves, for a product that writes `results`. Every
// block reads the row, so no block may write to it.
template <class Norm>
bool normable(const ops::ConstView& x, const Norm& op, const ops::ConstView& results) {
  constexpr std::int64_t kFewest = 512;  // one warp normalises shorter rows and sums in another order
  constexpr std::int64_t kMost = 4096;
  return is_row(x) && is_row(op.out) && apart(x, op.out) && results.dim(0) == 1 && apart(x, results) &&
         x.dim(1) % linear::decode::kNibbleValues == 0 && x.dim(1) > kFewest && x.dim(1) <= kMost &&
         op.weight.present() && reinterpret_cast<std::uintptr_t>(op.weight.data) % 16 == 0;
}

template <class Norm>
linear::decode::InputNorm input_norm(const ops::ConstView& x, const Norm& op, int memory) {
  constexpr int kPair = 64;  // chunks that a warp of the norm's own kernel holds
  const int chunks = to_int(x.dim(1) / 8);
  return {x.data,
          op.weight.data,
          op.weight.dtype,
          op.out.data,
          chunks,
          (chunks + kPair - 1) / kPair * 32,
          static_cast<double>(x.dim(1)),
          op.eps,
          memory};
}

}  // namespace sluice::backend::cuda::fused
