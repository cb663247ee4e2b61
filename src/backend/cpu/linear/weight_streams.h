// Rows of a weight read as four streams, and what is fetched ahead of them.
//
// A core has lines of several pages under way at a time, but few of each page. So rows that are multiplied
// together lie kStreamBytes apart or follow each other if they are longer: of a block of four times as many
// bytes every stream reads a quarter. Farther apart is slower where rows are long: sets of the caches and
// banks of the memory repeat. On Zen 5 rows follow each other however short they are: 4-bit rows of 1 KB are
// read at 74 GB/s by two cores where streams 8 KB apart give 62.
#pragma once

#include <algorithm>
#include <bit>

#include "backend/cpu/linear/weight_matrix.h"
#include "backend/cpu/runtime/fetch.h"

namespace sluice::backend::cpu::linear {

constexpr int kStreams = 4;
inline const std::int64_t kStreamBytes = kAmdFamily >= 0x1a ? 0 : 8192;
constexpr std::int64_t kBytesAhead = 2048;  // of a stream, fetched before they are needed: a row at least

// One row of each stream.
struct StreamRows {
  const MatrixFormat* format;
  Matrix matrix;
  std::int64_t rows[kStreams];

  const std::byte* values(int stream) const { return matrix.values + rows[stream] * format->row_bytes; }
  // Their values are fetched as those of other rows are read.
  void fetch_groups() const {
    for (const std::int64_t row : rows) {
      fetch(matrix.scales + row * format->scale_row_bytes, format->scale_row_bytes);
      fetch(matrix.biases + row * format->bias_row_bytes, format->bias_row_bytes);
    }
  }
};

// Rows [row, row_end) of a matrix. Where they do not fill the last block's quarters the last one repeats.
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
  // What to fetch while row i of each is read: some rows further on, or of what is read next.
  StreamRows ahead(std::int64_t i, const WeightStreams& next) const {
    i += ahead_;
    return i < length_ ? (*this)[i] : next[std::min(i - length_, next.length_ - 1)];
  }

 private:
  std::int64_t quarter() const { return std::int64_t{1} << quarter_bits_; }  // of a block, rows

  const MatrixFormat* format_;
  Matrix matrix_;
  std::int64_t row_;
  std::int64_t row_end_;
  int quarter_bits_;
  std::int64_t length_;
  std::int64_t ahead_;
};

}  // namespace sluice::backend::cpu::linear
