#include "checkpoint/packed_experts.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/integer_cast.h"
#include "base/json.h"
#include "checkpoint/quantization_plan.h"
#include "checkpoint/tensor_type.h"
#include "quant/formats.h"

namespace sluice::checkpoint {

namespace {

constexpr std::size_t kTensorAlignment = 64;

std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

ops::DType type_of(const Json& format, const char* key, const std::string& where) {
  const auto text = json_get<std::string>(format, key, where);
  const auto stored = file_dtype(text);
  const auto type = stored ? tensor_type(*stored) : std::nullopt;
  if (!type || *type == ops::DType::i32)
    fail(ErrorKind::checkpoint, "{}: '{}' is '{}', weights are F32, BF16, F16, U32 or U8", where, key, text);
  return *type;
}

ops::Weight matrix_of(const Json& format, std::int64_t rows, std::int64_t columns, const std::string& where) {
  ops::Weight matrix;
  const ops::DType values = type_of(format, "values", where);
  if (!format.contains("scales")) {
    matrix.values = {nullptr, values, {rows, columns}};
    return matrix;
  }
  const ops::DType scales = type_of(format, "scales", where);
  const Json block{{"quantization",
                    {{"mode", json_get<std::string>(format, "mode", where)},
                     {"bits", json_get<int>(format, "bits", where)},
                     {"group_size", json_get<int>(format, "group_size", where)}}}};
  const QuantParams params = *QuantizationPlan(block, where).globals();
  if (columns % params.group_size != 0 || columns * params.bits % 32 != 0)
    fail(ErrorKind::checkpoint, "{}: rows of {} values are not a whole number of groups of {} at {} bits",
         where, columns, params.group_size, params.bits);
  matrix.mode = params.mode;
  matrix.bits = params.bits;
  matrix.group_size = params.group_size;
  matrix.values = {nullptr, values, {rows, columns * params.bits / 32}};
  matrix.scales = {nullptr, scales, {rows, columns / params.group_size}};
  if (quant::format_of(params.mode).biases != quant::Plane::none) matrix.biases = matrix.scales;
  return matrix;
}

std::array<ops::Weight, 3> matrices_of(const std::string& metadata, std::int64_t inner, std::int64_t hidden,
                                       const std::string& where) {
  const Json formats = parse_json(metadata, where);
  std::array<ops::Weight, 3> matrices;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const Json* format = json_find(formats, kProjections[i], where);
    if (format == nullptr || !format->is_object())
      fail(ErrorKind::checkpoint, "{}: the metadata does not say how '{}' is stored", where, kProjections[i]);
    const bool down = i == 2;
    matrices[i] = matrix_of(*format, down ? hidden : inner, down ? inner : hidden, where);
  }
  return matrices;
}

}  // namespace

RecordLayout::RecordLayout(const std::array<ops::Weight, 3>& matrices) : matrices_(matrices) {
  for (ops::Weight& matrix : matrices_)
    for (ops::ConstView* tensor : {&matrix.values, &matrix.scales, &matrix.biases}) {
      if (!tensor->present()) continue;
      tensor->data = reinterpret_cast<const void*>(bytes_);
      bytes_ = round_up(bytes_ + to_size(tensor->elements()) * size_bytes(tensor->dtype), kTensorAlignment);
    }
  bytes_ = round_up(bytes_, kRecordAlignment);
}

RecordLayout::RecordLayout(const std::string& metadata, std::int64_t inner, std::int64_t hidden,
                           const std::string& where)
    : RecordLayout(matrices_of(metadata, inner, hidden, where)) {}

std::string RecordLayout::metadata() const {
  Json formats = Json::object();
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    const ops::Weight& matrix = matrices_[i];
    Json& format = formats[std::string(kProjections[i])];
    format["values"] = name(file_type(matrix.values.dtype));
    if (!matrix.quantized()) continue;
    format["scales"] = name(file_type(matrix.scales.dtype));
    format["mode"] = name(matrix.mode);
    format["bits"] = matrix.bits;
    format["group_size"] = matrix.group_size;
  }
  return formats.dump();
}

std::array<ops::Weight, 3> RecordLayout::in(const std::byte* record) const {
  std::array<ops::Weight, 3> placed = matrices_;
  for (ops::Weight& matrix : placed)
    for (ops::ConstView* tensor : {&matrix.values, &matrix.scales, &matrix.biases})
      if (tensor->present()) tensor->data = record + reinterpret_cast<std::uintptr_t>(tensor->data);
  return placed;
}

}  // namespace sluice::checkpoint
