#include "backend/cuda/linear/decode/decode.h"

#include <algorithm>

#include "backend/cuda/linear/decode/int4_experts.h"
#include "backend/cuda/linear/decode/int4_plan.h"
#include "backend/cuda/linear/decode/plan.h"

namespace sluice::backend::cuda::linear::decode {

namespace {

// The part of the call for tokens [first, first + count).
LinearCall tokens_of(const LinearCall& call, long long first, long long count) {
  LinearCall part = call;
  const auto bytes = [](ops::DType type) { return static_cast<long long>(size_bytes(type)); };
  part.x = static_cast<const std::byte*>(call.x) + first * call.x_token * bytes(call.type);
  part.out = static_cast<std::byte*>(call.out) + first * call.out_token * bytes(call.out_type);
  if (call.experts != nullptr) part.experts = call.experts + first * call.experts_token;
  part.tokens = count;
  return part;
}

void launch_part(Context& context, const LinearCall& call) {
  if (const auto plan = expert_plan(call, context.device())) return launch_experts(context, call, *plan);
  if (const auto plan = nibble_plan(call, context.device())) return launch_nibbles(context, call, *plan);
  const auto plan = decode_plan(call, context.device());
  if (!plan) return launch_generic(context, call);
  switch (call.w[0].storage) {
    case Storage::f32:
    case Storage::bf16:
    case Storage::f16:
      return launch_dense(context, call, *plan);
    case Storage::fp4:
    case Storage::fp8:
      return launch_minifloat(context, call, *plan);
    default:
      return launch_affine(context, call, *plan);
  }
}

}  // namespace

void launch_decode(Context& context, const LinearCall& call) {
  constexpr long long kRows = 1 << 15;  // per launch: limited by the grid and by marks in shared memory
  const long long most = std::max<long long>(1, kRows / call.slots);
  for (long long first = 0; first < call.tokens; first += most)
    launch_part(context, tokens_of(call, first, std::min(most, call.tokens - first)));
}

}  // namespace sluice::backend::cuda::linear::decode
