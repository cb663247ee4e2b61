// Chooses the kernel of a prefill product and prepares its call.
#include "backend/cuda/linear/prefill/prefill.h"
#include "backend/cuda/linear/prefill/call.h"
#include "backend/cuda/linear/prefill/unpacked.h"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::prefill {

namespace {

bool divisible(const void* pointer, std::uintptr_t by) {
  return reinterpret_cast<std::uintptr_t>(pointer) % by == 0;
}

// Rows that 16-byte copies can read or write.
bool in_chunks(const void* data, long long token, long long slot, long long width) {
  return divisible(data, 16) && token % 8 == 0 && slot % 8 == 0 && width % 8 == 0;
}

bool same_format(const Matrices& a, const Matrices& b) {
  return a.storage == b.storage && a.scale_type == b.scale_type && a.group_size == b.group_size;
}

// Whether every row can be read with the loads for its storage: a row's offset from its matrix's start is a
// multiple of a load, so only the matrices have to be aligned.
bool readable(const Matrices& w, long long inputs) {
  return w.uniform() && w.alignment == 16 && inputs % (w.quantized() ? 32 : 8) == 0;
}

int log2_of(int power) {
  int log = 0;
  while (1 << log < power) ++log;
  return log;
}

}  // namespace

bool supports_prefill(const LinearCall& call, const DeviceInfo& device) {
  constexpr long long kMost = 1LL << 30;  // rows, columns and chunks of x have 32-bit indices
  if (call.type != ops::DType::bf16) return supports_exact_int4(call, device);
  if (call.operands == 2 && call.out_type != ops::DType::bf16) return false;
  if (call.tokens * call.x_token + call.slots * call.x_slot >= 8 * kMost) return false;
  if (!in_chunks(call.x, call.x_token, call.x_slot, call.inputs)) return false;
  if (call.operands == 2 && !same_format(call.w[0], call.w[1])) return false;
  for (int i = 0; i < call.operands; ++i)
    if (!readable(call.w[i], call.inputs)) return false;
  if (call.experts != nullptr && call.matrices > kMaxBuckets) return false;
  return call.tokens * call.slots < kMost && call.outputs < kMost && call.inputs < kMost;
}

void launch_prefill(Context& context, const LinearCall& linear) {
  if (linear.type != ops::DType::bf16) return launch_exact_int4(context, linear);
  PrefillCall call;
  call.linear = linear;
  const bool hopper = context.device().compute_capability == 90;
  const bool int4 = hopper && supports_int4(linear);
  call.buckets_rows = int4 && linear.experts != nullptr ? int4_bucket_rows(linear) : kTileRows;
  if (linear.experts != nullptr)
    call.buckets = sort_by_expert(context, linear, call.buckets_rows,
                                  context.scratch(bucket_bytes(linear, call.buckets_rows)));
  call.row_tiles = to_int(divide_up<long long>(linear.tokens, kTileRows));
  call.group_shift = log2_of(linear.w[0].group_size);
  call.vector_out = in_chunks(linear.out, linear.out_token, linear.out_slot, 0);
  if (int4) return launch_int4(context, call);
  if (worth_unpacking(linear)) {
    call.linear = unpack_weights(context, linear);
    call.group_shift = 0;
  }
  if (hopper) return launch_wgmma(context, call);
  launch_mma(context, call);
}

}  // namespace sluice::backend::cuda::linear::prefill
