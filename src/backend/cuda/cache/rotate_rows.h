// Rotation of rows, as a step of other ops.
#pragma once

#include "backend/cuda/device/rows.cuh"
#include "backend/cuda/runtime/launch.h"

namespace sluice::backend::cuda::cache {

struct RotateCall {
  const void* x;
  void* out;
  RowOffsets x_rows;
  RowOffsets out_rows;
  const unsigned char* signs;  // null: none
  bool inverse;
};

// Rows of `width` (32, 64 .. 1024), F32 or BF16 each.
void rotate_rows(Context& context, const RotateCall& call, long long width, ops::DType x_type,
                 ops::DType out_type);

}  // namespace sluice::backend::cuda::cache
