#include "backend/reference/cache/turboquant_vector.h"

#include <cmath>
#include <cstring>

#include "backend/reference/cache/rotation.h"
#include "backend/reference/runtime/element.h"
#include "base/integer_cast.h"
#include "quant/codebook.h"

namespace sluice::backend::reference::cache {

namespace {

double length(const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

// Stores BF16 numbers instead of codes; `values` become what is stored.
void store_numbers(std::vector<double>& values, std::uint8_t* to) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ops::BFloat16 number = ops::to_bfloat16(static_cast<float>(values[i]));
    std::memcpy(to + 2 * i, &number, 2);
    values[i] = static_cast<double>(ops::to_float(number));
  }
}

// The number of interval bounds below the value: a value on a bound gets the lower code, NaN gets code 0.
std::size_t nearest_code(const quant::Codebook& book, double value) {
  std::size_t code = 0;
  while (code + 1 < book.size() && value > book.bounds()[code]) ++code;
  return code;
}

// The nearest codes as one bit stream; `values` become the levels.
void store_codes(std::vector<double>& values, std::int64_t bits, std::uint8_t* to) {
  const quant::Codebook& book = quant::codebook(bits);
  std::fill_n(to, values.size() * to_size(bits) / 8, std::uint8_t{0});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t code = nearest_code(book, values[i]);
    for (std::size_t b = 0; b < to_size(bits); ++b) {
      const std::size_t bit = i * to_size(bits) + b;
      to[bit / 8] = static_cast<std::uint8_t>(to[bit / 8] | (code >> b & 1) << bit % 8);
    }
    values[i] = book.levels()[code];
  }
}

}  // namespace

void encode_vector(const ops::ConstView& x, const ops::ConstView& signs, std::int64_t bits,
                   ops::TurboquantNorm kind, const ops::View& codes, float& norm) {
  std::vector<double> values = read_row(x);
  const double norm_of_x = length(values);
  const double root = std::sqrt(values.size());
  rotate(values, signs);
  for (double& value : values) value = norm_of_x == 0 ? 0 : value * root / norm_of_x;
  auto* stream = static_cast<std::uint8_t*>(codes.data);
  if (bits == 16)
    store_numbers(values, stream);
  else
    store_codes(values, bits, stream);
  const bool matched = kind == ops::TurboquantNorm::matched && norm_of_x != 0;
  norm = static_cast<float>(matched ? norm_of_x * root / length(values) : norm_of_x);
}

std::vector<double> decode_vector(const ops::ConstView& codes, double norm, std::int64_t bits) {
  std::vector<double> values(to_size(codes.shape.back() * 8 / bits));
  const double factor = norm / std::sqrt(values.size());
  if (bits == 16) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = ops::load(codes.data, ops::DType::bf16, static_cast<std::int64_t>(i)) * factor;
    return values;
  }
  const quant::Codebook& book = quant::codebook(bits);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t code = 0;
    for (std::size_t b = 0; b < to_size(bits); ++b) {
      const std::size_t bit = i * to_size(bits) + b;
      const std::size_t byte = ops::read<std::uint8_t>(codes.data, static_cast<std::int64_t>(bit / 8));
      code |= (byte >> bit % 8 & 1) << b;
    }
    values[i] = book.levels()[code] * factor;
  }
  return values;
}

}  // namespace sluice::backend::reference::cache
