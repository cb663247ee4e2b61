// A row of x as integers in the order of the columns, for kernels that reorder or unpack themselves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/linear/weight_matrix.h"

namespace sluice::backend::cpu::linear::integer {

struct PlainRow {
  const std::int16_t* integers;
  const float* scales;  // per group
  const float* sums;
};

// The layout of these in one block of memory.
struct PlainRowLayout {
  std::int64_t scales_at;  // in bytes
  std::int64_t sums_at;
  std::int64_t bytes;
  explicit PlainRowLayout(const MatrixFormat& format)
      : scales_at((2 * format.columns + 63) / 64 * 64),
        sums_at(scales_at + 4 * format.groups()),
        bytes((sums_at + 4 * format.groups() + 63) / 64 * 64) {}
  PlainRow at(const std::byte* row) const {
    return {reinterpret_cast<const std::int16_t*>(row), reinterpret_cast<const float*>(row + scales_at),
            reinterpret_cast<const float*>(row + sums_at)};
  }
};

}  // namespace sluice::backend::cpu::linear::integer
