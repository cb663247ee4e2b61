#include "checkpoint/tensor_type.h"

#include <utility>

namespace sluice::checkpoint {

namespace {

constexpr std::pair<FileDType, ops::DType> kTypes[] = {
    {FileDType::f32, ops::DType::f32}, {FileDType::bf16, ops::DType::bf16}, {FileDType::f16, ops::DType::f16},
    {FileDType::i32, ops::DType::i32}, {FileDType::u32, ops::DType::u32},   {FileDType::u8, ops::DType::u8},
};

}  // namespace

std::optional<ops::DType> tensor_type(FileDType type) {
  for (const auto& [file, tensor] : kTypes)
    if (file == type) return tensor;
  return std::nullopt;
}

FileDType file_type(ops::DType type) {
  for (const auto& [file, tensor] : kTypes)
    if (tensor == type) return file;
  return FileDType::u8;  // every tensor type is in the table
}

}  // namespace sluice::checkpoint
