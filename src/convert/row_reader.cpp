#include "convert/row_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/integer_cast.h"
#include "quant/minifloat.h"

namespace sluice::convert {
namespace {

using checkpoint::FileDType;
using ops::BFloat16;
using ops::DType;
using ops::Float16;

constexpr std::array<float, 256> kE4m3 = [] {
  std::array<float, 256> values{};
  for (size_t code = 0; code < values.size(); ++code)
    values[code] = quant::e4m3_to_float(static_cast<uint8_t>(code));
  return values;
}();

DType float_type(FileDType type) {
  switch (type) {
    case FileDType::f32:
      return DType::f32;
    case FileDType::bf16:
      return DType::bf16;
    case FileDType::f16:
      return DType::f16;
    default:
      fail(ErrorKind::internal, "{} is no type to compute in", checkpoint::name(type));
  }
}

template <class T>
float load(const std::byte* from, int64_t i) {
  T value;
  std::memcpy(&value, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return ops::to_float(value);
}

float load(FileDType type, const std::byte* from, int64_t i) {
  switch (type) {
    case FileDType::f32:
      return load<float>(from, i);
    case FileDType::bf16:
      return load<BFloat16>(from, i);
    case FileDType::f16:
      return load<Float16>(from, i);
    default:
      return kE4m3[std::to_integer<size_t>(from[i])];
  }
}

template <class T>
void load_all(const std::byte* from, std::vector<float>& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = load<T>(from, static_cast<int64_t>(i));
}

float rounded(float value, FileDType type) {
  if (type == FileDType::bf16) return ops::to_float(ops::to_bfloat16(value));
  if (type == FileDType::f16) return ops::to_float(ops::to_float16(value));
  return value;
}

template <class T, class Narrow>
void narrow_all(const std::vector<float>& from, std::byte* to, Narrow narrow) {
  for (size_t i = 0; i < from.size(); ++i) {
    const T value = narrow(from[i]);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

void narrow(const std::vector<float>& from, DType type, std::byte* to) {
  if (type == DType::bf16) return narrow_all<BFloat16>(from, to, ops::to_bfloat16);
  if (type == DType::f16) return narrow_all<Float16>(from, to, ops::to_float16);
  std::memcpy(to, from.data(), from.size() * sizeof(float));
}

}  // namespace

RowReader::RowReader(const Parameter& parameter, checkpoint::Fp8Blocks blocks)
    : parameter_(parameter), blocks_(blocks), dtype_(float_type(parameter.dtype)) {
  const Piece& piece = parameter.pieces.front();
  verbatim_ = piece.tensor->dtype == parameter.dtype && !parameter.add_one && !piece.transposed;
}

const std::byte* RowReader::row(int64_t row, Scratch& scratch) const {
  const int64_t rows_per_piece = parameter_.rows_per_piece();
  const Piece& piece = parameter_.pieces[row / rows_per_piece];
  const int64_t own = row % rows_per_piece;
  if (verbatim_) return piece.tensor->data.data() + to_size(piece.first_row + own) * row_bytes();
  scratch.values.resize(to_size(parameter_.columns()));
  scratch.bytes.resize(row_bytes());
  widen(piece, own, scratch.values);
  if (parameter_.add_one)
    for (float& value : scratch.values) value = rounded(value + 1, parameter_.source);
  narrow(scratch.values, dtype_, scratch.bytes.data());
  return scratch.bytes.data();
}

void RowReader::widen(const Piece& piece, int64_t row, std::vector<float>& values) const {
  const auto count = std::ssize(values);
  if (piece.transposed) {
    for (int64_t i = 0; i < count; ++i) values[i] = element(piece, piece.first_row + i, row);
    return;
  }
  const std::byte* from =
      piece.tensor->data.data() +
      (piece.first_row + row) * count * static_cast<int64_t>(checkpoint::size_bytes(piece.tensor->dtype));
  switch (piece.tensor->dtype) {
    case FileDType::f32:
      return load_all<float>(from, values);
    case FileDType::bf16:
      return load_all<BFloat16>(from, values);
    case FileDType::f16:
      return load_all<Float16>(from, values);
    default:
      widen_blocks(piece, piece.first_row + row, from, values);
  }
}

void RowReader::widen_blocks(const Piece& piece, int64_t row, const std::byte* from,
                             std::vector<float>& values) const {
  const auto count = std::ssize(values);
  for (int64_t begin = 0; begin < count; begin += blocks_.columns) {
    const float by = scale(piece, row, begin);
    const int64_t end = std::min(count, begin + blocks_.columns);
    for (int64_t i = begin; i < end; ++i)
      values[i] = rounded(kE4m3[std::to_integer<size_t>(from[i])] * by, FileDType::bf16);
  }
}

float RowReader::element(const Piece& piece, int64_t row, int64_t column) const {
  const int64_t columns = piece.tensor->shape.back();
  const float value = load(piece.tensor->dtype, piece.tensor->data.data(), row * columns + column);
  if (piece.scale_inv == nullptr) return value;
  return rounded(value * scale(piece, row, column), FileDType::bf16);
}

float RowReader::scale(const Piece& piece, int64_t row, int64_t column) const {
  const int64_t at = row / blocks_.rows * piece.scale_inv->shape[1] + column / blocks_.columns;
  return load(piece.scale_inv->dtype, piece.scale_inv->data.data(), at);
}

}  // namespace sluice::convert
