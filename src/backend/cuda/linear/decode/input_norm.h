// A norm that the blocks of a product compute themselves, for one token. The bits are those of the op.
#pragma once

#include "sluice/ops/dtype.h"

namespace sluice::backend::cuda::linear::decode {

inline constexpr int kMostNormChunks = 512;                   // per row
inline constexpr int kNormBytes = (kMostNormChunks + 8) * 8;  // sums of chunks and of warps, in double

// The product's input is out = rms_norm(x). All rows are BF16 in whole, aligned 16-byte chunks.
struct InputNorm {
  const void* x = nullptr;
  const void* weight = nullptr;
  ops::DType weight_type = ops::DType::f32;
  void* out = nullptr;  // for later readers; one block writes it
  int chunks = 0;       // per row
  int threads = 0;      // of the norm's own kernel, whose order of sums is used
  double divisor = 1;   // of the sum of squares
  double eps = 0;
  int memory = 0;  // offset in shared memory of kNormBytes for this norm
};

}  // namespace sluice::backend::cuda::linear::decode
