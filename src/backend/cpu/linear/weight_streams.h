// Rows of a weight read as four streams, and prefetching for them.
//
// A core can have cache lines of several pages in flight, but only few of each page. So rows that are
// multiplied together are kStreamBytes apart, or consecutive if they are longer: of a block of four times as
// many bytes, every stream reads a quarter. Larger distances are slower for long rows, because cache sets and
// memory banks repeat. On Zen 5 rows are always consecutive: two cores read 4-bit rows of 1 KB at 74 GB/s,
// where streams 8 KB apart give 62.
#pragma once

#include <algorithm>
#include <bit>

#include "backend/cpu/linear/weight_matrix.h"
#include "backend/cpu/runtime/fetch.h"

namespace sluice::backend::cpu::linear {

constexpr int kStreams = 4;
inline const std::int64_t kStreamBytes = kAmdFamily >= 0x1a ? 0 : 8192;
constexpr std::int64_t kBytesAhead = 2048;  // prefetched per stream before they are needed: at least a row

// One row of each stream.
struct StreamRows {
  const MatrixFormat* format;
  Matrix matrix;
  std::int64_t rows[kStreams];

  const std::byte* values(int stream) const { return matrix.values + rows[stream] * format->row_bytes; }
  // Prefetches scales and biases; values are prefetched while other rows are read.
  void fetch_groups() const {
    for (const std::int64_t row : rows) {
      fetch(matrix.scales + row * format->scale_row_bytes, format->scale_row_bytes);
      fetch(matrix.biases + row * format->bias_row_bytes, format->bias_row_bytes);
    }
  }
};

// Rows [row, row_end) of a matrix. If they do not fill the last block's quarters, the last row is repeated.
class WeightStreams {
 public:
  WeightStreams(const MatrixFormat& format, const Matrix& matrix, std::int64_t row, std::int64_t row_end)
      : format_(&format),
        matrix_(matrix),
        row_(row),
        row_end_(row_end),
        quarter_bits_(std::bit_width(static_cast<std::uint64_t>(kStreamBytes / format.row_bytes) | 1) - 1) {
    const std::int64_t rest = (row_end - row) % (kStreams * quarter());
    length_ = (row_end - row - rest) / kStreams + (rest + kStreams - 1) / kStreams;
    ahead_ = std::max<std::int64_t>(1, kBytesAhead / format.row_bytes);
  }

  const MatrixFormat& format() const { return *format_; }
  const Matrix& matrix() const { return matrix_; }
  std::int64_t row() const { return row_; }
  std::int64_t row_end() const { return row_end_; }

  std::int64_t length() const { return length_; }
  StreamRows operator[](std::int64_t i) const {
    const std::int64_t first = row_ + (i >> quarter_bits_) * kStreams * quarter() + (i & (quarter() - 1));
    const std::int64_t left = row_end_ - (first - (i & (quarter() - 1)));
    StreamRows result{
        format_, matrix_, {first, first + quarter(), first + 2 * quarter(), first + 3 * quarter()}};
    if (left >= kStreams * quarter()) return result;
    const std::int64_t own = (left + kStreams - 1) / kStreams;
    for (int s = 0; s < kStreams; ++s) result.rows[s] = std::min(first + s * own, row_end_ - 1);
    return result;
  }
  // The rows to prefetch while row i of each stream is read: later ones, or the first ones of `next`.
  StreamRows ahead(std::int64_t i, const WeightStreams& next) const {
    i += ahead_;
    return i < length_ ? (*this)[i] : next[std::min(i - length_, next.length_ - 1)];
  }

 private:
  std::int64_t quarter() const { return std::int64_t{1} << quarter_bits_; }  // rows per quarter of a block

  const MatrixFormat* format_;
  Matrix matrix_;
  std::int64_t row_;
  std::int64_t row_end_;
  int quarter_bits_;
  std::int64_t length_;
  std::int64_t ahead_;
};

}  // namespace sluice::backend::cpu::linear
