#include "ops/limits/rules.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "base/integer_cast.h"
#include "tensor/element.h"

namespace sluice::ops {

namespace {

// Compares bits, which compilers vectorise: a vocabulary has hundreds of thousands of logits.
bool has_nan(std::span<const float> values) {
  constexpr std::uint32_t kInfinity = 0x7f800000;
  std::uint32_t largest = 0;
  for (const float value : values)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7fffffff);
  return largest > kInfinity;
}

}  // namespace

void check_no_nan(std::string_view op, const ConstView& logits, std::int64_t row) {
  const std::int64_t count = logits.dim(1);
  const std::int64_t first = row * logits.strides[0];
  if (logits.dtype == DType::f32 &&
      !has_nan({static_cast<const float*>(logits.data) + first, to_size(count)}))
    return;
  for (std::int64_t e = 0; e < count; ++e)
    if (std::isnan(load(logits.data, logits.dtype, first + e)))
      fail(ErrorKind::input, "{}: field 'logits' is NaN at [{},{}]", op, row, e);
}

void check_no_nan(std::string_view op, const ConstView& logits) {
  for (std::int64_t row = 0; row < logits.dim(0); ++row) check_no_nan(op, logits, row);
}

void check_ids(std::string_view op, std::string_view field, const ConstView& ids, std::int64_t limit) {
  const std::int64_t rows = ids.rank() == 2 ? ids.dim(0) : 1;
  const std::int64_t columns = ids.shape.back();
  const std::int64_t stride = ids.rank() == 2 ? ids.strides[0] : 0;
  const auto* values = static_cast<const std::int32_t*>(ids.data);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      if (values[r * stride + c] < 0 || values[r * stride + c] >= limit)
        fail(ErrorKind::input, "{}: field '{}' has {} at [{}{}], allowed is 0 to {}", op, field,
             values[r * stride + c], ids.rank() == 2 ? fmt::format("{},", r) : "", c, limit - 1);
}

void check_finite(std::string_view op, std::string_view attribute, double value) {
  if (!std::isfinite(value))
    fail(ErrorKind::input, "{}: attribute '{}' is {}, it must be finite", op, attribute, value);
}

void check_finite_positive(std::string_view op, std::string_view attribute, double value) {
  if (!std::isfinite(value) || value < 0)
    fail(ErrorKind::input, "{}: attribute '{}' is {}, it must be finite and not negative", op, attribute,
         value);
}

void check_range(std::string_view op, std::string_view attribute, std::int64_t value, std::int64_t low,
                 std::int64_t high) {
  if (value < low || value > high)
    fail(ErrorKind::input, "{}: attribute '{}' is {}, allowed is {} to {}", op, attribute, value, low, high);
}

void check_one_of(std::string_view op, std::string_view first_name, const Weight& first,
                  std::string_view second_name, const Weight& second) {
  if (first.present() == second.present())
    fail(ErrorKind::input, "{}: {} of '{}' and '{}' given, allowed is exactly one", op,
         first.present() ? "both" : "neither", first_name, second_name);
}

void check_divides(std::string_view op, std::string_view large_name, std::int64_t large,
                   std::string_view small_name, std::int64_t small) {
  if (small < 1 || large % small != 0)
    fail(ErrorKind::input, "{}: {} = {} is no multiple of {} = {}", op, large_name, large, small_name, small);
}

namespace {
bool has_codebook(std::int64_t bits) {
  return (bits >= 2 && bits <= 6) || bits == 8;
}
}  // namespace

void check_turboquant_bits(std::string_view op, std::string_view attribute, std::int64_t bits) {
  if (!has_codebook(bits))
    fail(ErrorKind::input, "{}: attribute '{}' is {}, allowed is 2, 3, 4, 5, 6 or 8", op, attribute, bits);
}

void check_cache_bits(std::string_view op, std::string_view attribute, std::int64_t bits) {
  if (!has_codebook(bits) && bits != 16)
    fail(ErrorKind::input, "{}: attribute '{}' is {}, allowed is 2, 3, 4, 5, 6 or 8, or 16 for BF16 numbers",
         op, attribute, bits);
}

void check_rotation_width(std::string_view op, std::int64_t width) {
  if (width < 32 || width > 1024 || (width & (width - 1)) != 0)
    fail(ErrorKind::input, "{}: D is {}, allowed is a power of two from 32 to 1024", op, width);
}

std::int64_t cache_rows(const Dims& dims) {
  return dims["pages"] < 0 ? dims["S"] : dims["pages"] * dims["S"];
}

void check_pages(std::string_view op, const std::int32_t* pages, std::int64_t b, std::int64_t begin,
                 std::int64_t end, const Dims& dims) {
  for (std::int64_t page = begin / dims["S"]; page * dims["S"] < end; ++page)
    if (pages[page] < 0 || pages[page] >= dims["P"])
      fail(ErrorKind::input, "{}: field 'page_table' has {} at page {} of sequence {}, allowed is 0 to {}",
           op, pages[page], page, b, dims["P"] - 1);
}

void WrittenPages::add(const std::int32_t* pages, std::int64_t begin, std::int64_t end,
                       std::int64_t page_rows) {
  for (std::int64_t page = begin / page_rows; page * page_rows < end; ++page) written_.push_back(pages[page]);
}

void WrittenPages::check(std::string_view op) {
  std::sort(written_.begin(), written_.end());
  const auto twice = std::adjacent_find(written_.begin(), written_.end());
  if (twice != written_.end())
    fail(ErrorKind::input, "{}: field 'page_table' names page {} twice among those that the op writes", op,
         *twice);
}

void check_window(std::string_view op, std::int64_t window) {
  if (window < 0) fail(ErrorKind::input, "{}: attribute 'window' is {}, it must not be negative", op, window);
}

}  // namespace sluice::ops
