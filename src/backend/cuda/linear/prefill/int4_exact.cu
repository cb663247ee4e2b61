// Prefill products of F32 inputs with 4-bit weights on sm_90a, with F32 accuracy.
//
//   out[t, n] = sum over blocks of 64 values of K of
//     scale[n] sum_k x[t, k] (code[n, k] - 8) + (bias[n] + 8 scale[n]) sum_k x[t, k]
//
// A float is the sum of three BF16 numbers, and a code minus 8 is one, so the tensor cores' products are
// exact; their sums over a block of 64 are scaled and added in F32. A first kernel splits the inputs and sums
// each 64 of them. The second is the kernel for BF16 inputs (int4_wgmma.cu) with three products instead of
// one, and with codes that are not dequantised. An element's sum has the same order in any tile.
//
// Per stage of 256 rows x 32 tokens: 20 KiB from the L2 cache, 768 cycles of the tensor cores.
#include <algorithm>

#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/linear/prefill/int4_tile.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::prefill::int4 {

namespace {

constexpr int kTerms = 3;
constexpr long long kMostSplitBytes = 64LL << 20;

// The inputs, and the rows of terms that are made from them.
struct SplitCall {
  const float* x;
  long long token_step;
  long long slot_step;
  unsigned slots;   // of x: 1 if the slots share a token's row
  unsigned eights;  // per row
  long long count;  // number of eights
  Bf16* terms;      // [row, term, K]
  float* sums;      // [row, K / 64]
};

constexpr int kSplitThreads = 256;

// Splits the upper half off a float; infinities and NaN are split off entirely.
__device__ __forceinline__ std::uint32_t split_off(float& x) {
  const std::uint32_t bits = __float_as_uint(x);
  const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
  const std::uint32_t upper = finite || x != x ? bits & 0xffff0000u | (finite ? 0 : 0x00400000u) : bits;
  x = finite ? x - __uint_as_float(upper) : 0.0f;
  return upper >> 16;
}

// A thread splits eight values; eight neighbouring threads cover a block of 64.
__global__ void __launch_bounds__(kSplitThreads) split_inputs(SplitCall call) {
  wait_for_inputs();
  allow_successor();
  const long long index = static_cast<long long>(blockIdx.x) * kSplitThreads + threadIdx.x;
  if (index >= call.count) return;  // exits in whole groups of eight threads
  const auto row = static_cast<unsigned>(index / call.eights);
  const auto eight = static_cast<unsigned>(index % call.eights);
  const float* from =
      call.x + row / call.slots * call.token_step + row % call.slots * call.slot_step + eight * 8;
  const float4 low = reinterpret_cast<const float4*>(from)[0];
  const float4 high = reinterpret_cast<const float4*>(from)[1];
  float x[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  float sum = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
  const unsigned neighbours = 0xffu << threadIdx.x % kWarp / 8 * 8;
#pragma unroll
  for (int step = 1; step < 8; step *= 2) sum += __shfl_xor_sync(neighbours, sum, step);
  if (eight % 8 == 0) call.sums[row * (call.eights / 8) + eight / 8] = sum;
  Bf16* to = call.terms + static_cast<long long>(row) * kTerms * call.eights * 8 + eight * 8;
#pragma unroll
  for (int term = 0; term < kTerms; ++term) {
    std::uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t first = split_off(x[2 * i]);
      pairs[i] = first | split_off(x[2 * i + 1]) << 16;
    }
    *reinterpret_cast<uint4*>(to + term * call.eights * 8) =
        make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// The lane's part of 16 rows per warp of codes minus 8, as left operands of four products.
template <class S>
__device__ __forceinline__ void unpack_codes(const Ring<S>& ring, int slab, std::uint32_t (&a)[16]) {
  const int lane = to_int(threadIdx.x) % kWarp;
  const std::uint32_t select = 0x4440u | to_unsigned(lane % 4);
#pragma unroll
  for (int lower = 0; lower < 2; ++lower) {
    const int row = slab * 16 + lower * 8 + lane / 4;
    const std::byte* codes = ring.codes() + row * kCodeBytes;
    const uint4 left = *reinterpret_cast<const uint4*>(codes + code_place(row, 0));
    const uint4 right = *reinterpret_cast<const uint4*>(codes + code_place(row, 1));
    const std::uint32_t words[8] = {left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w};
#pragma unroll
    for (int eight = 0; eight < 8; ++eight) {
      // 128 + code is the BF16 number with the code in its mantissa.
      const std::uint32_t numbers =
          __byte_perm(words[eight], 0, select) * 0x1001u & 0x000f000fu | 0x43004300u;
      const __nv_bfloat162 code =
          __hsub2(*reinterpret_cast<const __nv_bfloat162*>(&numbers), __float2bfloat162_rn(136.0f));
      a[eight / 2 * 4 + eight % 2 * 2 + lower] = *reinterpret_cast<const std::uint32_t*>(&code);
    }
  }
}

__device__ __forceinline__ float group_number(const std::byte* numbers, int row, int group) {
  return to_float(reinterpret_cast<const Bf16*>(numbers + row * kScaleBytes)[group]);
}

// sums += scale part + (bias + 8 scale) input_sums, for the warp's 16 rows.
template <class S, int kCount>
__device__ __forceinline__ void add_scaled(const Ring<S>& ring, int slab, int group,
                                           const float (&part)[kCount], float (&sums)[kCount]) {
  const int lane = to_int(threadIdx.x) % kWarp;
  float scale[2];
  float offset[2];
#pragma unroll
  for (int lower = 0; lower < 2; ++lower) {
    const int row = slab * 16 + lower * 8 + lane / 4;
    scale[lower] = group_number(ring.scales(), row, group);
    offset[lower] = fmaf(8.0f, scale[lower], group_number(ring.biases(), row, group));
  }
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    const float2 inputs = *reinterpret_cast<const float2*>(ring.input_sums() + 2 * i + lane % 4 * 2);
#pragma unroll
    for (int e = 0; e < 4; ++e)
      sums[i + e] =
          fmaf(scale[e / 2], part[i + e], fmaf(offset[e / 2], e % 2 == 0 ? inputs.x : inputs.y, sums[i + e]));
  }
}

template <class S, int kTokens>
__device__ __forceinline__ void multiply_tile(const PrefillCall& call, const Tile& tile, Ring<S>& ring) {
  const int inputs = to_int(call.linear.inputs);
  const int warp = to_int(threadIdx.x) / kWarp;
  const int in_block = (4 << call.group_shift) - 1;
  float sums[S::kBlocks][kTokens / 2] = {};
  for (int k = 0; k < inputs; k += kDepth) {
    ring.wait_until_full();
    publish_to_tensor_cores();
#pragma unroll
    for (int b = 0; b < S::kBlocks; ++b) {
      const int slab = (warp / 4 * S::kBlocks + b) * 4 + warp % 4;
      std::uint32_t codes[16];
      unpack_codes<S>(ring, slab, codes);
      float part[kTokens / 2] = {};
      begin_products();
#pragma unroll
      for (int term = kTerms - 1; term >= 0; --term) {
        const std::uint64_t x = describe_rows(ring.x() + term * S::kTermBytes);
#pragma unroll
        for (int step = 0; step < kDepth / 16; ++step)
          multiply_registers(part, codes + 4 * step, x + 2 * step);
      }
      close_products();
      wait_for_sums(part);
      add_scaled<S>(ring, slab, (k >> call.group_shift) % 4, part, sums[b]);
    }
    ring.empty[ring.turn.index].arrive_once_per_warp();
    ring.next(((k + kDepth) & in_block) == 0);
  }
  store_floats<S>(call, tile, sums);
}

#endif

template <class S>
__global__ void __launch_bounds__(kMultipliers + kLoaders, S::kBlocksPerProcessor)
    multiply_exact_int4(const __grid_constant__ PrefillCall call) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  load_and_multiply<S>(call, [&]<int kTokens>(const Tile& tile, Ring<S>& ring) {
    multiply_tile<S, kTokens>(call, tile, ring);
  });
#endif
}

template <int kOperands>
void launch_products(Context& context, PrefillCall call) {
  using S = Shape<2, kFewTokens, kOperands, kTerms>;
  call.row_tiles = to_int(divide_up<long long>(call.linear.tokens, S::kTokens));
  call.column_tiles = to_int(divide_up<long long>(call.linear.outputs, S::kColumns));
  launch(context, multiply_exact_int4<S>,
         {dim3(to_unsigned(S::kBlocksPerProcessor * context.device().multiprocessors)),
          dim3(kMultipliers + kLoaders), S::kBytes + kAlignment},
         call);
}

// Handles as many tokens at a time as have room for their terms in scratch memory.
void launch_part(Context& context, const LinearCall& linear) {
  const long long slots = linear.x_slot != 0 ? linear.slots : 1;
  const long long rows = linear.tokens * slots;
  const auto term_bytes = to_size(rows * linear.inputs * kTerms) * sizeof(Bf16);
  const auto sum_bytes = to_size(rows * linear.inputs / kDepth) * sizeof(float);
  const std::size_t buckets = linear.experts != nullptr ? bucket_bytes(linear, kFewTokens) : 0;
  std::byte* memory = context.scratch(term_bytes + sum_bytes + buckets);
  auto* terms = reinterpret_cast<Bf16*>(memory);
  auto* sums = reinterpret_cast<float*>(memory + term_bytes);
  const long long eights = rows * linear.inputs / 8;
  const SplitCall split{
      static_cast<const float*>(linear.x), linear.x_token, linear.x_slot, to_unsigned(slots),
      to_unsigned(linear.inputs / 8),      eights,         terms,         sums};
  launch(context, split_inputs,
         {dim3(to_unsigned(divide_up<long long>(eights, kSplitThreads))), dim3(kSplitThreads)}, split);
  PrefillCall call;
  call.linear = linear;
  call.linear.x = terms;
  call.linear.x_token = slots * kTerms * linear.inputs;
  call.linear.x_slot = linear.x_slot != 0 ? kTerms * linear.inputs : 0;
  call.input_sums = sums;
  while (1 << call.group_shift < linear.w[0].group_size) ++call.group_shift;
  if (linear.experts != nullptr)
    call.buckets = sort_by_expert(context, linear, kFewTokens, memory + term_bytes + sum_bytes);
  if (linear.operands == 2)
    launch_products<2>(context, call);
  else
    launch_products<1>(context, call);
}

}  // namespace

}  // namespace sluice::backend::cuda::linear::prefill::int4

namespace sluice::backend::cuda::linear::prefill {

bool supports_exact_int4(const LinearCall& call, const DeviceInfo& device) {
  using namespace int4;
  const bool rows_of_floats =
      reinterpret_cast<std::uintptr_t>(call.x) % 16 == 0 && call.x_token % 4 == 0 && call.x_slot % 4 == 0;
  if (device.compute_capability != 90 || call.type != ops::DType::f32 || call.out_type != ops::DType::f32 ||
      !rows_of_floats || (call.experts != nullptr && call.matrices > kMaxBuckets))
    return false;
  for (int i = 0; i < call.operands; ++i) {
    const Matrices& w = call.w[i];
    if (w.storage != Storage::affine4 || w.scale_type != ScaleType::bf16 || !w.uniform() ||
        w.alignment < 16 || w.scale_alignment < kScaleBytes || w.group_size != call.w[0].group_size ||
        w.group_size % kDepth != 0 || call.inputs % (4 * w.group_size) != 0)
      return false;
  }
  return true;
}

void launch_exact_int4(Context& context, const LinearCall& call) {
  using namespace int4;
  const long long token_bytes =
      (call.x_slot != 0 ? call.slots : 1) * call.inputs * kTerms * static_cast<long long>(sizeof(Bf16));
  const long long most = std::max<long long>(1, kMostSplitBytes / token_bytes);
  for (long long first = 0; first < call.tokens; first += most) {
    LinearCall part = call;
    part.x = static_cast<const float*>(call.x) + first * call.x_token;
    part.out = static_cast<float*>(call.out) + first * call.out_token;
    if (call.experts != nullptr) part.experts = call.experts + first * call.experts_token;
    part.tokens = std::min(most, call.tokens - first);
    launch_part(context, part);
  }
}

}  // namespace sluice::backend::cuda::linear::prefill
