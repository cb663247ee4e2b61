// The values of a parameter, row by row.
#pragma once

#include <cstddef>
#include <vector>

#include "base/integer_cast.h"
#include "convert/plan.h"
#include "sluice/ops/dtype.h"

namespace sluice::convert {

// Reads, computes and rounds in MLX's order: E4M3 times its scale to BF16, + 1 in the stored type, then the
// cast. Rows can be read by several threads, each with its own scratch memory.
class RowReader {
 public:
  struct Scratch {
    std::vector<float> values;
    std::vector<std::byte> bytes;
  };

  RowReader(const Parameter& parameter, checkpoint::Fp8Blocks blocks);

  ops::DType dtype() const { return dtype_; }
  size_t row_bytes() const { return to_size(parameter_.columns()) * ops::size_bytes(dtype_); }
  // In dtype(), at any byte address: in the mapped file if nothing changes, otherwise in `scratch`.
  const std::byte* row(int64_t row, Scratch& scratch) const;

 private:
  void widen(const Piece& piece, int64_t row, std::vector<float>& values) const;
  void widen_blocks(const Piece& piece, int64_t row, const std::byte* from, std::vector<float>& values) const;
  float element(const Piece& piece, int64_t row, int64_t column) const;
  float scale(const Piece& piece, int64_t row, int64_t column) const;

  const Parameter& parameter_;
  checkpoint::Fp8Blocks blocks_;
  ops::DType dtype_;
  bool verbatim_;  // no value changes
};

}  // namespace sluice::convert
