// Softmax attention over cache rows, shared by attention and mla_attention.
#pragma once

#include "backend/cpu/runtime/context.h"
#include "ops/sequences.h"

namespace sluice::backend::cpu::attention {

// Keys may consist of two separate pieces (latent and rope); a score is the sum of the pieces' products.
inline constexpr int kMaxPieces = 2;

struct AttendCall {
  int pieces = 1;
  ops::ConstView queries[kMaxPieces];  // [T,H,width]
  ops::ConstView keys[kMaxPieces];     // [S,KH,width] or, pooled or paged, [P,S,KH,width]
  ops::ConstView values;               // like keys
  ops::View out;                       // [T,H,values width]
  ops::SequenceValue start;
  double scale = 1;
  std::int64_t window = 0;
};

// Query i of a sequence sees rows 0..start+i, or the last `window` of them; head h reads KV head h/(H/KH).
void attend(Context& context, const AttendCall& call, const ops::Sequences& sequences);

}  // namespace sluice::backend::cpu::attention
