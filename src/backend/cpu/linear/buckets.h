// Output rows grouped by the matrix they use.
#pragma once

#include "backend/cpu/runtime/row_walk.h"
#include "base/integer_cast.h"
#include "sluice/ops/view.h"

namespace sluice::backend::cpu::linear {

class Buckets {
 public:
  struct Bucket {
    std::int64_t matrix;
    const std::int32_t* rows;  // ascending
    std::int64_t size;
  };

  static std::size_t bytes(std::int64_t rows, std::int64_t matrices) {
    return to_size(rows + 2 * matrices + 1) * sizeof(std::int32_t);
  }

  Buckets() = default;
  // Row o uses matrix experts[o], or o mod matrices. Stored in `scratch`.
  Buckets(const ops::ConstView& experts, std::int64_t rows, std::int64_t matrices, std::byte* scratch)
      : rows_(reinterpret_cast<std::int32_t*>(scratch)),
        starts_(rows_ + rows),
        used_(starts_ + matrices + 1) {
    const auto matrix_of = [&](std::int64_t o) -> std::int64_t {
      if (!experts.present()) return o % matrices;
      const std::int64_t k = experts.dim(1);
      return static_cast<const std::int32_t*>(experts.data)[o / k * experts.strides[0] + o % k];
    };
    for (std::int64_t m = 0; m <= matrices; ++m) starts_[m] = 0;
    for (std::int64_t o = 0; o < rows; ++o) ++starts_[matrix_of(o)];
    std::int32_t end = 0;
    for (std::int64_t m = 0; m <= matrices; ++m) {
      if (m < matrices && starts_[m] > 0) used_[count_++] = to_int(m);
      end += starts_[m];
      starts_[m] = end;
    }
    // Filling backwards turns each end into a start and keeps the rows in order.
    for (std::int64_t o = rows - 1; o >= 0; --o) rows_[--starts_[matrix_of(o)]] = to_int(o);
  }

  std::int64_t count() const { return count_; }
  Bucket operator[](std::int64_t i) const {
    const std::int64_t m = used_[i];
    return {m, rows_ + starts_[m], starts_[m + 1] - starts_[m]};
  }

 private:
  std::int32_t* rows_ = nullptr;
  std::int32_t* starts_ = nullptr;
  std::int32_t* used_ = nullptr;
  std::int64_t count_ = 0;
};

}  // namespace sluice::backend::cpu::linear
