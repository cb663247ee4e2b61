// out[n, k] = BF16(w[n, k]) for the rows of one matrix. One thread per slice of 32 values. Bytes: the weights
// are read once and written once as BF16.
#include "backend/cuda/linear/prefill/unpacked.h"

#include "backend/cuda/linear/prefill/call.h"
#include "backend/cuda/linear/prefill/slice.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::prefill {

namespace {

constexpr int kThreads = 256;
constexpr long long kFewestTokens = 2 * kTileRows;
constexpr long long kMostBytes = 64LL << 20;

template <Storage kStorage>
__global__ void __launch_bounds__(kThreads) unpack_rows(Matrices w, int inputs, int slices, Bf16* out) {
  const int index = to_int(blockIdx.x) * kThreads + to_int(threadIdx.x);
  const int in_row = inputs / kSlice;
  const int row = index / in_row;
  const int k = (index - row * in_row) * kSlice;
  SliceOf<kStorage> slice;
  if (index < slices) {
    const SliceSource source{w.first.values + row * w.row_bytes, w.first.scales + row * w.scale_row_bytes,
                             w.first.biases + row * w.scale_row_bytes};
    slice.fetch(w, source, {k, k / w.group_size, inputs - k}, {});
  }
  wait_for_inputs();  // the previous kernel may still read the scratch memory
  allow_successor();
  auto* to = reinterpret_cast<std::byte*>(out + static_cast<long long>(row) * inputs + k);
  if (index < slices) slice.finish(w, {to, 0, 0});
}

Matrices unpack_matrix(Context& context, const LinearCall& call, const Matrices& w, Bf16* out) {
  const auto inputs = to_int(call.inputs);
  const auto slices = to_int(call.outputs * call.inputs / kSlice);
  with_storage(w.storage, [&]<Storage kStorage>() {
    if constexpr (kStorage != Storage::bf16)
      launch(context, unpack_rows<kStorage>, {dim3(to_unsigned(divide_up(slices, kThreads))), dim3(kThreads)},
             w, inputs, slices, out);
  });
  Matrices unpacked;
  unpacked.storage = Storage::bf16;
  unpacked.bits = 16;
  unpacked.row_bytes = 2 * call.inputs;
  unpacked.first.values = reinterpret_cast<const std::byte*>(out);
  unpacked.step = call.outputs;
  unpacked.alignment = 16;
  return unpacked;
}

}  // namespace

bool worth_unpacking(const LinearCall& call) {
  return call.w[0].storage != Storage::bf16 && call.experts == nullptr && call.slots == 1 &&
         call.tokens >= kFewestTokens && call.inputs % kSlice == 0 &&
         call.operands * call.outputs * call.inputs * 2 <= kMostBytes;
}

LinearCall unpack_weights(Context& context, const LinearCall& call) {
  LinearCall unpacked = call;
  const long long values = call.outputs * call.inputs;
  auto* memory = reinterpret_cast<Bf16*>(context.scratch(to_size(call.operands * values) * sizeof(Bf16)));
  for (int i = 0; i < call.operands; ++i)
    unpacked.w[i] = unpack_matrix(context, call, call.w[i], memory + i * values);
  return unpacked;
}

}  // namespace sluice::backend::cuda::linear::prefill
