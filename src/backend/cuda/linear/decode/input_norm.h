// A norm that the blocks of a product do themselves, for one token. The bits are those of the op.
#pragma once

#include "sluice/ops/dtype.h"

namespace sluice::backend::cuda::linear::decode {

inline constexpr int kMostNormChunks = 512;                   // of a row
inline constexpr int kNormBytes = (kMostNormChunks + 8) * 8;  // sums in double of chunks and of warps

// out = rms_norm(x) is what the product takes. All rows are BF16 in whole chunks of 16 bytes.
struct InputNorm {
  const void* x = nullptr;
  const void* weight = nullptr;
  ops::DType weight_type = ops::DType::f32;
  void* out = nullptr;  // for whoever reads it later: one block writes it
  int chunks = 0;       // of a row
  int threads = 0;      // of the norm's own kernel, whose order of sums is kept
  double divisor = 1;   // of the sum of squares
  double eps = 0;
  int memory = 0;  // bytes from the start of shared memory, where kNormBytes are its own
};

}  // namespace sluice::backend::cuda::linear::decode
