// Encoding of vectors for a TurboQuant cache, shared by turboquant_encode and turboquant_append.
#pragma once

#include "backend/cpu/runtime/context.h"
#include "base/function_ref.h"
#include "sluice/ops/cache/turboquant_encode.h"

namespace sluice::backend::cpu::cache {

// The source and the destination of one vector.
struct EncodeVector {
  const void* x;
  ops::DType dtype;
  std::int64_t bits;
  std::uint8_t* codes;
  float* norm;
};

struct EncodeCall {
  std::int64_t vectors;
  std::size_t width;
  ops::ConstView signs;
  ops::TurboquantNorm norm;
};

// Encodes vectors 0..call.vectors-1, each described by vector(i); one without x is skipped.
void encode_vectors(Context& context, const EncodeCall& call, FunctionRef<EncodeVector(std::int64_t)> vector);

}  // namespace sluice::backend::cpu::cache
