#include "sluice/ops/weight.h"

#include "base/error.h"
#include "base/integer_cast.h"
#include "quant/formats.h"

namespace sluice::ops {

std::string_view name(QuantMode mode) {
  return quant::format_of(mode).name;
}

// Called before the format is checked, so it must work with any number of bits.
Shape Weight::shape() const {
  Shape logical = values.shape;
  if (quantized() && logical.rank() > 0)
    logical[logical.rank() - 1] = quant::columns(quant::format_of(mode), logical.back(), bits);
  return logical;
}

Weight Weight::operator[](std::int64_t i) const {
  Weight matrix = *this;
  matrix.values = values[i];
  if (scales.present()) matrix.scales = scales[i];
  if (biases.present()) matrix.biases = biases[i];
  return matrix;
}

std::size_t Weight::bytes() const {
  std::size_t total = 0;
  for (const ConstView* part : {&values, &scales, &biases})
    if (part->present()) total += to_size(part->elements()) * size_bytes(part->dtype);
  return total;
}

Shape ExpertWeights::shape() const {
  if (separate.empty()) return stack.shape();
  const Shape one = separate[0].shape();
  Shape all{std::ssize(separate)};
  for (const std::int64_t dim : one.dims()) all.push_back(dim);
  return all;
}

Weight ExpertWeights::operator[](std::int64_t expert) const {
  if (separate.empty()) return stack[expert];
  if (expert < 0 || expert >= std::ssize(separate))
    fail(ErrorKind::internal, "expert {} of {}", expert, separate.size());
  return separate[expert];
}

}  // namespace sluice::ops
