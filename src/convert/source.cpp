#include "convert/source.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/quote.h"

namespace sluice::convert {

using checkpoint::FileDType;
using checkpoint::TensorEntry;

void Source::mark(const TensorEntry& tensor) {
  if (taken_.insert(tensor.name).second) bytes_taken_ += tensor.data.size();
}

const TensorEntry* Source::take_scale(const TensorEntry& weight) {
  const TensorEntry& scale = files_.get(weight.name + "_scale_inv");
  const auto blocks = [](int64_t size, int64_t block) { return (size + block - 1) / block; };
  const std::vector<int64_t> expected = {blocks(weight.shape[0], blocks_.rows),
                                         blocks(weight.shape[1], blocks_.columns)};
  if (scale.shape != expected || (scale.dtype != FileDType::f32 && scale.dtype != FileDType::bf16)) {
    fail(ErrorKind::checkpoint, "tensor {} is {} [{}], expected F32 or BF16 [{}]", quote(scale.name),
         name(scale.dtype), fmt::join(scale.shape, ","), fmt::join(expected, ","));
  }
  mark(scale);
  return &scale;
}

Piece Source::take(const std::string& tensor_name, size_t dimensions) {
  const TensorEntry& tensor = files_.get(tensor_name);
  if (tensor.shape.size() != dimensions || tensor.data.empty()) {
    fail(ErrorKind::checkpoint, "tensor {} has the shape [{}], expected {} dimension{}, none empty",
         quote(tensor_name), fmt::join(tensor.shape, ","), dimensions, dimensions == 1 ? "" : "s");
  }
  mark(tensor);
  switch (tensor.dtype) {
    case FileDType::f32:
    case FileDType::f16:
    case FileDType::bf16:
      return {.tensor = &tensor};
    case FileDType::f8_e4m3:
      if (dimensions == 2) return {.tensor = &tensor, .scale_inv = take_scale(tensor)};
      break;
    default:
      break;
  }
  fail(ErrorKind::unsupported,
       "tensor {} is {} [{}]: expected F32, F16 or BF16, or F8_E4M3 with two dimensions", quote(tensor_name),
       name(tensor.dtype), fmt::join(tensor.shape, ","));
}

}  // namespace sluice::convert
