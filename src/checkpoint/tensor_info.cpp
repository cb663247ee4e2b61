#include "checkpoint/tensor_info.h"

#include "base/error.h"

namespace sluice::checkpoint {
namespace {

struct DTypeRow {
  FileDType dtype;
  std::string_view name;
  uint64_t bytes;
};

constexpr DTypeRow kDTypes[] = {
    {FileDType::f64, "F64", 8},         {FileDType::f32, "F32", 4},
    {FileDType::f16, "F16", 2},         {FileDType::bf16, "BF16", 2},
    {FileDType::i64, "I64", 8},         {FileDType::i32, "I32", 4},
    {FileDType::i16, "I16", 2},         {FileDType::i8, "I8", 1},
    {FileDType::u64, "U64", 8},         {FileDType::u32, "U32", 4},
    {FileDType::u16, "U16", 2},         {FileDType::u8, "U8", 1},
    {FileDType::boolean, "BOOL", 1},    {FileDType::f8_e4m3, "F8_E4M3", 1},
    {FileDType::f8_e5m2, "F8_E5M2", 1}, {FileDType::f8_e8m0, "F8_E8M0", 1},
};

const DTypeRow& row(FileDType dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) return row;
  }
  fail(ErrorKind::internal, "{} is no element type of a file", static_cast<int>(dtype));
}

}  // namespace

std::string_view name(FileDType dtype) {
  return row(dtype).name;
}

uint64_t size_bytes(FileDType dtype) {
  return row(dtype).bytes;
}

std::optional<FileDType> file_dtype(std::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<uint64_t> size_bytes(const TensorInfo& info) {
  int64_t bytes = size_bytes(info.dtype);
  for (const int64_t dimension : info.shape) {
    if (dimension < 0 || __builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
  }
  return bytes;
}

}  // namespace sluice::checkpoint
