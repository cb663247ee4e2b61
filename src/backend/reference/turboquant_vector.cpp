#include "backend/reference/turboquant_vector.h"

#include <cmath>

#include "backend/reference/element.h"
#include "backend/reference/rotation.h"
#include "quant/codebook.h"

namespace sluice::backend::reference {

namespace {

double length(const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

// How many borders the value lies beyond: on a border the lower code, and code 0 for NaN.
std::size_t nearest_code(const quant::Codebook& book, double value) {
  std::size_t code = 0;
  while (code + 1 < book.size() && value > book.bounds()[code]) ++code;
  return code;
}

}  // namespace

void encode_vector(const ops::ConstView& x, const ops::ConstView& signs, std::int64_t bits,
                   ops::TurboquantNorm kind, const ops::View& codes, float& norm) {
  const quant::Codebook& book = quant::codebook(bits);
  std::vector<double> values = read_row(x);
  const double norm_of_x = length(values);
  const double root = std::sqrt(static_cast<double>(values.size()));
  rotate(values, signs);
  auto* stream = static_cast<std::uint8_t*>(codes.data);
  std::fill_n(stream, codes.shape.back(), std::uint8_t{0});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t code = nearest_code(book, norm_of_x == 0 ? 0 : values[i] * root / norm_of_x);
    for (std::size_t b = 0; b < static_cast<std::size_t>(bits); ++b) {
      const std::size_t bit = i * static_cast<std::size_t>(bits) + b;
      stream[bit / 8] = static_cast<std::uint8_t>(stream[bit / 8] | (code >> b & 1) << bit % 8);
    }
    values[i] = book.levels()[code];
  }
  norm =
      static_cast<float>(kind == ops::TurboquantNorm::plain ? norm_of_x : norm_of_x * root / length(values));
}

std::vector<double> decode_vector(const ops::ConstView& codes, double norm, std::int64_t bits) {
  const quant::Codebook& book = quant::codebook(bits);
  std::vector<double> values(static_cast<std::size_t>(codes.shape.back() * 8 / bits));
  const double factor = norm / std::sqrt(static_cast<double>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t code = 0;
    for (std::size_t b = 0; b < static_cast<std::size_t>(bits); ++b) {
      const std::size_t bit = i * static_cast<std::size_t>(bits) + b;
      const std::size_t byte = ops::read<std::uint8_t>(codes.data, static_cast<std::int64_t>(bit / 8));
      code |= (byte >> bit % 8 & 1) << b;
    }
    values[i] = book.levels()[code] * factor;
  }
  return values;
}

}  // namespace sluice::backend::reference
