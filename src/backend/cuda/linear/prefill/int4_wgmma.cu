// Prefill products with 4-bit weights on sm_90a: weights are dequantised to BF16 in registers, from which the
// tensor cores read them.
//
//   out[t, n] = sum_k x[t, k] (code[n, k] scale[n, k / g] + bias[n, k / g]), or silu(gate) * up of two such
//   sums
//
// Weights are the left operand of wgmma, which may be in registers, and tokens the right one, so dequantised
// weights are never written to shared memory. One persistent block per multiprocessor (two for few tokens)
// loops over tiles of 128 or 256 weight rows by up to 128 tokens. One warpgroup copies x and codes into a
// ring buffer of stages of 64 values of K, and scales and biases four groups at a time, across tile
// boundaries. Two warpgroups dequantise and multiply, each with half of the weight rows: while the tensor
// cores run the products of one block of 64 rows, the next block's codes are dequantised. A tile with at most
// half of the tokens multiplies half of the columns. An element's sum runs over K in the same order in any
// tile.
//
// Per stage of 256 rows x 128 tokens: 24 KiB from the L2 cache, 1024 cycles of the tensor cores, and of each
// scheduler about 400 issue slots (2.5 instructions per weight).
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/linear/prefill/int4_tile.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::prefill::int4 {

namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Converts the two codes of byte `select`: 128 + code is the BF16 number with the code in its mantissa;
// subtracting 128 is exact, and the FMA with scale and bias rounds once.
struct Unpack {
  std::uint32_t select;
  std::uint32_t mask = 0x000f000fu;
  std::uint32_t offset = 0x43004300u;

  __device__ __forceinline__ explicit Unpack(int byte) : select(0x4440u | static_cast<std::uint32_t>(byte)) {
    // Keeps both in registers, as lop3 takes at most one immediate.
    asm volatile("" : "+r"(mask), "+r"(offset));
  }
  __device__ __forceinline__ std::uint32_t operator()(std::uint32_t word, __nv_bfloat162 scale,
                                                      __nv_bfloat162 bias) const {
    const std::uint32_t apart = __byte_perm(word, 0, select) * 0x1001u;
    std::uint32_t numbers;
    asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(numbers) : "r"(apart), "r"(mask), "r"(offset));
    const __nv_bfloat162 code =
        __hsub2(*reinterpret_cast<const __nv_bfloat162*>(&numbers), __float2bfloat162_rn(128.0f));
    const __nv_bfloat162 value = __hfma2(code, scale, bias);
    return *reinterpret_cast<const std::uint32_t*>(&value);
  }
};

// Half `half` of a pair, duplicated.
__device__ __forceinline__ __nv_bfloat162 twice(std::uint32_t pair, int half) {
  const std::uint32_t both = __byte_perm(pair, 0, half == 0 ? 0x1010 : 0x3232);
  return *reinterpret_cast<const __nv_bfloat162*>(&both);
}

// The lane's part of 16 weight rows per warp by 64 values of K, as left operands of four products.
template <class S>
__device__ __forceinline__ void unpack_block(const Ring<S>& ring, int slab, int group_shift, int k,
                                             std::uint32_t (&a)[16]) {
  const int lane = to_int(threadIdx.x) % kWarp;
  const Unpack unpack(lane % 4);
  const int pair = (k >> group_shift) % 4 / 2 * 4;
#pragma unroll
  for (int lower = 0; lower < 2; ++lower) {
    const int row = slab * 16 + lower * 8 + lane / 4;
    const std::byte* codes = ring.codes() + row * kCodeBytes;
    const uint4 left = *reinterpret_cast<const uint4*>(codes + code_place(row, 0));
    const uint4 right = *reinterpret_cast<const uint4*>(codes + code_place(row, 1));
    const std::uint32_t words[8] = {left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w};
    const auto scales = *reinterpret_cast<const std::uint32_t*>(ring.scales() + row * kScaleBytes + pair);
    const auto biases = *reinterpret_cast<const std::uint32_t*>(ring.biases() + row * kScaleBytes + pair);
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // 32 values, which are in one group
      const int group = ((k + 32 * half) >> group_shift) % 2;
      const __nv_bfloat162 scale = twice(scales, group);
      const __nv_bfloat162 bias = twice(biases, group);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int eight = 4 * half + i;  // of step eight / 2
        a[eight / 2 * 4 + eight % 2 * 2 + lower] = unpack(words[eight], scale, bias);
      }
    }
  }
}

template <class S, int kTokens>
__device__ __forceinline__ void multiply_tile(const PrefillCall& call, const Tile& tile, Ring<S>& ring,
                                              std::byte* staging) {
  const int inputs = to_int(call.linear.inputs);
  const int warp = to_int(threadIdx.x) / kWarp;
  const int in_block = (4 << call.group_shift) - 1;
  // Initialised with zeros rather than by a first product without accumulation: that would make the compiler
  // keep these registers live across all tile sizes.
  float sums[S::kBlocks][kTokens / 2] = {};
  // If two blocks share a multiprocessor, another warp dequantises while this one waits for its products.
  constexpr bool kOneByOne = S::kBlocksPerProcessor == 2;
  std::uint32_t a[kOneByOne ? 1 : 2][16];
  int before = -1;
  const auto stage = [&](int k, std::uint32_t(&first)[16], std::uint32_t(&second)[16]) {
    ring.wait_until_full();
    publish_to_tensor_cores();
    const std::uint64_t x = describe_rows(ring.x());
#pragma unroll
    for (int b = 0; b < S::kBlocks; ++b) {
      std::uint32_t(&here)[16] = b == 0 ? first : second;
      unpack_block<S>(ring, (warp / 4 * S::kBlocks + b) * 4 + warp % 4, call.group_shift, k, here);
      begin_products();
#pragma unroll
      for (int step = 0; step < kDepth / 16; ++step)
        multiply_registers(sums[b], here + 4 * step, x + 2 * step);
      close_products();
      wait_for_products<kOneByOne ? 0 : 1>();
      if (b == 0 && before >= 0) ring.empty[before].arrive_once_per_warp();
    }
    before = ring.turn.index;
    ring.next(((k + kDepth) & in_block) == 0);
  };
  if constexpr (kOneByOne) {
    for (int k = 0; k < inputs; k += kDepth) stage(k, a[0], a[0]);
  } else if constexpr (S::kBlocks == 2) {
    for (int k = 0; k < inputs; k += kDepth) stage(k, a[0], a[1]);
  } else {
    for (int k = 0; k < inputs; k += 2 * kDepth) {
      stage(k, a[0], a[0]);
      stage(k + kDepth, a[1], a[1]);
    }
  }
#pragma unroll
  for (int b = 0; b < S::kBlocks; ++b) wait_for_sums(sums[b]);
  ring.empty[before].arrive_once_per_warp();
  if constexpr (S::kOperands == 1)
    if (call.linear.out_type == ops::DType::f32) return store_floats<S>(call, tile, sums);
  store_tile<S, kTokens>(call, tile, sums, staging);
}

#endif

template <class S>
__global__ void __launch_bounds__(kMultipliers + kLoaders, S::kBlocksPerProcessor)
    multiply_int4(const __grid_constant__ PrefillCall call) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  load_and_multiply<S>(call, [&]<int kTokens>(const Tile& tile, Ring<S>& ring) {
    multiply_tile<S, kTokens>(call, tile, ring, ring.staging());
  });
#endif
}

template <class S>
void launch_shape(Context& context, PrefillCall call) {
  call.row_tiles = to_int(divide_up<long long>(call.linear.tokens, S::kTokens));
  call.column_tiles = to_int(divide_up<long long>(call.linear.outputs, S::kColumns));
  launch(context, multiply_int4<S>,
         {dim3(to_unsigned(S::kBlocksPerProcessor * context.device().multiprocessors)),
          dim3(kMultipliers + kLoaders), S::kBytes + kAlignment},
         call);
}

// Whether tiles of 256 weight rows would leave half of the multiprocessors idle.
bool too_few_tiles(const LinearCall& call, int multiprocessors) {
  const long long tokens = divide_up<long long>(call.tokens, kManyTokens) * call.slots;
  return 2 * tokens * divide_up<long long>(call.outputs, 256) <= multiprocessors;
}

}  // namespace

}  // namespace sluice::backend::cuda::linear::prefill::int4

namespace sluice::backend::cuda::linear::prefill {

bool supports_int4(const LinearCall& call) {
  const Matrices& w = call.w[0];
  return w.storage == Storage::affine4 && w.scale_type == ScaleType::bf16 &&
         (call.out_type == ops::DType::bf16 || call.operands == 1) && call.inputs % (4 * w.group_size) == 0 &&
         call.w[0].scale_alignment >= int4::kScaleBytes &&
         (call.operands == 1 || call.w[1].scale_alignment >= int4::kScaleBytes);
}

int int4_bucket_rows(const LinearCall& call) {
  // With few tokens per expert, narrow tiles, most of which are full.
  return call.tokens * call.slots <= call.matrices * int4::kFewTokens * 3 / 4 ? int4::kFewTokens
                                                                              : int4::kManyTokens;
}

void launch_int4(Context& context, const PrefillCall& call) {
  using namespace int4;
  const bool few =
      call.linear.experts != nullptr ? call.buckets_rows == kFewTokens : call.linear.tokens <= kFewTokens;
  if (call.linear.operands == 2)
    return few ? launch_shape<Shape<2, kFewTokens, 2>>(context, call)
               : launch_shape<Shape<2, kManyTokens, 2>>(context, call);
  if (few) return launch_shape<Shape<2, kFewTokens, 1>>(context, call);
  if (call.linear.experts == nullptr && too_few_tiles(call.linear, context.device().multiprocessors))
    return launch_shape<Shape<1, kManyTokens, 1>>(context, call);
  launch_shape<Shape<2, kManyTokens, 1>>(context, call);
}

}  // namespace sluice::backend::cuda::linear::prefill
