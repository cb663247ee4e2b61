// Prefill products on any GPU from sm_80 on: BF16 x times weights dequantised to BF16 in shared memory, with
// F32 accumulation.
//
// Persistent blocks of 8 warps loop over tiles of 128 rows x 128 weight rows, 32 x 64 per warp. There are two
// stages of 64 values of K: while the tensor cores (mma.sync m16n8k16) work on one, the next one's x is
// copied asynchronously and its packed weights are loaded into registers. Two blocks share a multiprocessor
// and hide each other's latencies. An element's sum runs over K in one fixed order in any tile.
#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/linear/prefill/store.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::prefill {

namespace {

constexpr int kThreads = 256;
constexpr int kColumns = 128;
constexpr int kRowBlocks = 2;  // of 16 rows per warp
constexpr int kGroups = 8;     // of 8 columns per warp
using WarpSums = Sums[kRowBlocks][kGroups];

__device__ __forceinline__ const std::byte* chunk_at(const std::byte* rows, int row, int chunk) {
  return rows + swizzled<8>(row, chunk) * 16;
}

__device__ __forceinline__ void accumulate(WarpSums& sums, const std::byte* x, const std::byte* w) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int step = 0; step < kTileDepth / 16; ++step) {
    Fragment a[kRowBlocks];
#pragma unroll
    for (int m = 0; m < kRowBlocks; ++m)
      a[m] = load_matrices(chunk_at(x, 16 * m + lane % 16, 2 * step + lane / 16));
#pragma unroll
    for (int g = 0; g < kGroups; g += 2) {
      const Fragment b =
          load_matrices(chunk_at(w, 8 * g + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
#pragma unroll
      for (int m = 0; m < kRowBlocks; ++m) multiply_add(sums[m][g], sums[m][g + 1], a[m], b);
    }
  }
}

template <Storage kStorage>
__global__ void __launch_bounds__(kThreads, 2) multiply_tiles(const __grid_constant__ PrefillCall call) {
  using Loader = TileLoader<kStorage, kColumns, kThreads>;
  extern __shared__ __align__(128) std::byte shared[];
  const int thread = threadIdx.x;
  const int lane = thread % kWarp;
  const int warp_row = thread / kWarp / 2 * (16 * kRowBlocks);
  const int warp_column = thread / kWarp % 2 * (8 * kGroups);
  const int inputs = to_int(call.linear.inputs);
  wait_for_inputs();
  allow_successor();
  const int tiles = count_tiles(call);
  Loader loader(call, thread);
  for (int index = blockIdx.x; index < tiles; index += to_int(gridDim.x)) {
    const Tile tile = tile_at<kColumns>(call, index);
    WarpSums sums = {};
    typename Loader::Slices slices;
    loader.begin(tile);
    __syncthreads();
    loader.fetch(0, shared, slices);
    loader.finish(shared, slices);
    for (int k = 0, stage = 0; k < inputs; k += kTileDepth, stage ^= 1) {
      std::byte* here = shared + stage * Loader::kStageBytes;
      std::byte* next = shared + (stage ^ 1) * Loader::kStageBytes;
      const bool more = k + kTileDepth < inputs;
      close_copies();
      wait_for_copies<0>();
      __syncthreads();
      if (more) loader.fetch(k + kTileDepth, next, slices);
      accumulate(sums, here + warp_row * kRowBytes, here + Loader::kXBytes + warp_column * kRowBytes);
      if (more) loader.finish(next, slices);
    }
    const int column = tile.column + warp_column / call.linear.operands;
#pragma unroll
    for (int m = 0; m < kRowBlocks; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        store_row<kGroups>(call, out_row(call, tile, warp_row + 16 * m + 8 * half + lane / 4), column,
                           [&](int g, int i) { return sums[m][g].at[2 * half + i]; });
  }
}

}  // namespace

void launch_mma(Context& context, PrefillCall call) {
  call.column_tiles = divide_up(to_int(call.linear.outputs) * call.linear.operands, kColumns);
  const auto blocks = to_unsigned(2 * context.device().multiprocessors);
  with_storage(call.linear.w[0].storage, [&]<Storage kStorage>() {
    launch(context, multiply_tiles<kStorage>,
           {dim3(blocks), dim3(kThreads), 2 * TileLoader<kStorage, kColumns, kThreads>::kStageBytes}, call);
  });
}

}  // namespace sluice::backend::cuda::linear::prefill
