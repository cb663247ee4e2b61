// Maps the element types of files to those of tensors.
#pragma once

#include <optional>

#include "checkpoint/tensor_info.h"
#include "sluice/ops/dtype.h"

namespace sluice::checkpoint {

std::optional<ops::DType> tensor_type(FileDType type);  // none for types that no op takes
FileDType file_type(ops::DType type);

}  // namespace sluice::checkpoint
