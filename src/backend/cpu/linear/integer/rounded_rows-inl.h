// The rows of x of a call, rounded for the products that read them. Included once per instruction set.
#if defined(SLUICE_BACKEND_CPU_INTEGER_ROUNDED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_ROUNDED_ROWS_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_ROUNDED_ROWS_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_ROUNDED_ROWS_INL_H_
#endif

#include <algorithm>

#include "backend/cpu/linear/integer/amx_int8.h"
#include "backend/cpu/linear/integer/arm_int8.h"
#include "backend/cpu/linear/integer/direct-inl.h"
#include "backend/cpu/linear/integer/panel_nibbles-inl.h"
#include "backend/cpu/linear/integer/plain_row.h"
#include "backend/cpu/linear/integer/rows-inl.h"
#include "backend/cpu/runtime/row_walk.h"
#include "base/integer_cast.h"
#include "ops/overlap.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

void round_plain_row(const MatrixFormat& format, const float* x, std::byte* to) {
  const PlainRowLayout layout(format);
  for (std::int64_t g = 0; g < format.groups(); ++g)
    round_group(x + g * format.group_size, format.group_size,
                reinterpret_cast<std::int16_t*>(to) + g * format.group_size,
                reinterpret_cast<float*>(to + layout.scales_at)[g],
                reinterpret_cast<float*>(to + layout.sums_at)[g]);
}

// Rounds a row of x for byte products, in the layout for word products. `integers` has room for the row.
void round_byte_row(const MatrixFormat& format, const float* x, std::int16_t* integers, std::byte* to) {
  const IntegerRowLayout layout(format);
  auto* scales = reinterpret_cast<float*>(to + layout.scales_at);
  auto* sums = reinterpret_cast<float*>(to + layout.sums_at);
  for (std::int64_t g = 0; g < format.groups(); ++g) {
    float scale = 0;
    float sum = 0;
    round_group(x + g * format.group_size, format.group_size, integers + g * format.group_size, scale, sum);
    std::fill_n(scales + g * arm::kRows, arm::kRows, scale);
    std::fill_n(sums + g * arm::kRows, arm::kRows, sum);
  }
  arm::split_digits(format, integers, to);
}

// A row of x for products of words or bytes in vectors. `integers` has room for the padded row.
void round_direct_row(const MatrixFormat& format, const DirectProduct& product, const float* x,
                      std::int16_t* integers, std::byte* to) {
  const IntegerRowLayout layout(format);
  auto* scales = reinterpret_cast<float*>(to + layout.scales_at);
  auto* sums = reinterpret_cast<float*>(to + layout.sums_at);
  std::memset(scales, 0, to_size(layout.bytes - layout.scales_at));
  const std::int64_t size = format.group_size;
  for (std::int64_t g = 0; g < format.groups(); ++g) {
    float scale = 0;
    float sum = 0;
    round_group(x + g * size, size, integers + g * size, scale, sum);
    for (int r = 0; r < kQuad; ++r) scales[g * kQuad + r] = scale, sums[g * kQuad + r] = sum;
  }
  const std::int64_t padded = layout.quads * kQuad * size;
  std::fill(integers + format.columns, integers + padded, std::int16_t{0});
  product.arrange(integers, padded, to);
}

// Rounded rows that products with the same input share.
class RoundedRows {
 public:
  RoundedRows() = default;
  RoundedRows(Isa isa, const Linear& op)
      : x_(op.x),
        format_(op.w.format()),
        rows_(row_count(op.x.shape)),
        row_bytes_(IntegerRowLayout(format_).bytes),
        plain_bytes_(PlainRowLayout(format_).bytes),
        has_tiles_(amx::available(isa) && amx::knows(format_)),
        by_bytes_(arm::knows(isa, format_)) {}

  // Whether `op` can use them, too: codes of one kind need the same layout of the same integers.
  bool serve(const Linear& op) const {
    const MatrixFormat& format = op.w.format();
    return format.storage == format_.storage && format.group_size == format_.group_size &&
           ops::identical(op.x, x_);
  }

  std::size_t bytes() const { return to_size(rows_ * (row_bytes_ + plain_bytes_)); }
  void place(std::byte* scratch) {
    at_ = scratch;
    plain_ = scratch + rows_ * row_bytes_;
  }
  // How they are read: in the order of the codes, in the order of the columns, or both.
  void want(bool direct, bool plain) {
    direct_ |= direct;
    plainly_ |= plain;
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return format_.columns; }
  bool has_tiles() const { return has_tiles_; }
  bool by_bytes() const { return by_bytes_; }

  void round(Context& context, std::int64_t begin, std::int64_t end, int worker) const {
    const std::size_t columns = format_.columns;
    const std::size_t padded = columns + kQuad * to_size(format_.group_size);
    auto* row = reinterpret_cast<float*>(
        context.worker_scratch(worker, padded * (sizeof(float) + sizeof(std::int16_t))));
    auto* integers = reinterpret_cast<std::int16_t*>(row + padded);
    for (std::int64_t r = begin; r < end; ++r) {
      load_row(row_at(x_, r), x_.dtype, columns, row);
      if (plainly_) round_plain_row(format_, row, plain_ + r * plain_bytes_);
      if (plainly_ && !has_tiles_ && has_nibble_panels(format_))
        order_for_nibbles(format_.columns, reinterpret_cast<std::int16_t*>(plain_ + r * plain_bytes_));
      if (!direct_) continue;
      if (by_bytes_)
        round_byte_row(format_, row, integers, at_ + r * row_bytes_);
      else
        round_direct_row(format_, direct_product(format_), row, integers, at_ + r * row_bytes_);
    }
  }

  const std::byte* direct(std::int64_t row) const { return at_ + row * row_bytes_; }
  PlainRow plain(std::int64_t row) const { return PlainRowLayout(format_).at(plain_ + row * plain_bytes_); }

 private:
  ops::ConstView x_;
  MatrixFormat format_;
  std::int64_t rows_ = 0;
  std::int64_t row_bytes_ = 0;    // per row in the order of the codes
  std::int64_t plain_bytes_ = 0;  // per row in the order of the columns
  std::byte* at_ = nullptr;
  std::byte* plain_ = nullptr;
  bool has_tiles_ = false;
  bool by_bytes_ = false;
  bool direct_ = false;
  bool plainly_ = false;
};

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
