// The description of a tensor in a file: name, element type, shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::checkpoint {

// Element types a safetensors file can hold.
enum class FileDType {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
};

std::string_view name(FileDType dtype);  // as in the file: "BF16"
uint64_t size_bytes(FileDType dtype);
std::optional<FileDType> file_dtype(std::string_view name);

struct TensorInfo {
  std::string name;
  FileDType dtype = FileDType::f32;
  std::vector<int64_t> shape;  // empty for a scalar
};

// Bytes of the tensor's data; none if a dimension is negative or the product overflows 63 bits.
std::optional<uint64_t> size_bytes(const TensorInfo& info);

}  // namespace sluice::checkpoint
