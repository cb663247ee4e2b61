#include "backend/reference/cache/rotation.h"

#include <cmath>

#include "backend/reference/runtime/element.h"
#include "base/integer_cast.h"

namespace sluice::backend::reference::cache {

namespace {

void transform(std::vector<double>& x) {
  for (std::size_t half = 1; half < x.size(); half *= 2)
    for (std::size_t begin = 0; begin < x.size(); begin += 2 * half)
      for (std::size_t i = begin; i < begin + half; ++i) {
        const double a = x[i];
        const double b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
  for (double& value : x) value /= std::sqrt(x.size());
}

void apply_signs(std::vector<double>& x, const ops::ConstView& signs) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= sign_of(signs, static_cast<std::int64_t>(i));
}

}  // namespace

double sign_of(const ops::ConstView& signs, std::int64_t i) {
  if (!signs.present()) return 1;
  const int byte = ops::read<std::uint8_t>(signs.data, i / 8);
  return (byte >> (i % 8) & 1) != 0 ? -1 : 1;
}

void rotate(std::vector<double>& x, const ops::ConstView& signs) {
  apply_signs(x, signs);
  transform(x);
}

void rotate_back(std::vector<double>& x, const ops::ConstView& signs) {
  transform(x);
  apply_signs(x, signs);
}

std::vector<double> read_row(const ops::ConstView& row) {
  std::vector<double> values(to_size(row.shape.back()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = get(row, i);
  return values;
}

void write_row(const std::vector<double>& values, const ops::View& row) {
  for (std::size_t i = 0; i < values.size(); ++i) set(row, values[i], i);
}

}  // namespace sluice::backend::reference::cache
