// Weights as the CPU kernels see them: storage, row sizes in bytes, and the address of each matrix.
#pragma once

#include <bit>

#include "quant/storage.h"

namespace sluice::backend::cpu::linear {

using quant::ScaleType;
using quant::Storage;

// Properties that all matrices of a field share.
struct MatrixFormat {
  Storage storage = Storage::f32;
  ScaleType scale_type = ScaleType::none;
  ScaleType bias_type = ScaleType::none;
  std::int64_t rows = 0;     // N
  std::int64_t columns = 0;  // K
  std::int64_t group_size = 1;
  std::int64_t row_bytes = 0;
  std::int64_t scale_row_bytes = 0;
  std::int64_t bias_row_bytes = 0;
  // A shift, since group sizes are powers of two and this is called every few rows.
  std::int64_t groups() const { return columns >> std::countr_zero(static_cast<std::uint64_t>(group_size)); }
};

// One matrix. Rows may start at any byte address.
struct Matrix {
  const std::byte* values = nullptr;
  const std::byte* scales = nullptr;
  const std::byte* biases = nullptr;
};

// The matrices of one weight field: a single one, a stack, one buffer per matrix, or some rows of each head
// of a larger matrix.
class Matrices {
 public:
  Matrices() = default;
  explicit Matrices(const ops::Weight& weight);
  explicit Matrices(const ops::ExpertWeights& experts);
  // Matrix h consists of `rows` rows of `weight` from row h * step + first on.
  Matrices(const ops::Weight& weight, std::int64_t count, std::int64_t step, std::int64_t first,
           std::int64_t rows);

  const MatrixFormat& format() const { return format_; }
  std::int64_t count() const { return count_; }
  Matrix operator[](std::int64_t i) const;

 private:
  MatrixFormat format_;
  Matrix base_;
  std::int64_t count_ = 0;
  std::int64_t row_step_ = 0;  // rows between matrices
  std::span<const ops::Weight> separate_;
};

}  // namespace sluice::backend::cpu::linear
