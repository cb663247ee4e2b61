// Prefill products on sm_90a: BF16 x times weights dequantised to BF16 in shared memory, with F32
// accumulation by wgmma.
//
// One persistent block per multiprocessor loops over tiles of 128 rows x kColumns weight rows. One warpgroup
// loads up to four stages of 64 values of K ahead, across tile boundaries: x by asynchronous copies, packed
// weights through registers; BF16 weights are copied like x. Two warpgroups multiply, 64 rows each; the
// second one skips tiles of at most 64 rows. An element's sum runs over K in one fixed order in any tile.
//
// Shared memory per stage of 256 columns: 16 + 32 KiB. The tensor cores need 1024 cycles for it; the loaders
// about 2.5 instructions per weight (4 bits), 320 issue slots of each scheduler.
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/device/wgmma.cuh"
#include "backend/cuda/linear/prefill/store.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::prefill {

namespace {

constexpr int kStages = 4;
constexpr int kMultipliers = 256;  // threads
constexpr int kLoaders = 128;
// The block is launched with 168 registers per thread, which are redistributed between the two roles.
constexpr int kMultiplierRegisters = 176;
constexpr int kLoaderRegisters = 152;
static_assert(kMultiplierRegisters * kMultipliers + kLoaderRegisters * kLoaders <=
              168 * (kMultipliers + kLoaders));
constexpr int kAlignment = 1024;  // of swizzled rows

// Whether a stage is filled by asynchronous copies alone; their completion then arrives on the barrier.
template <Storage kStorage>
constexpr bool kOnlyCopied = kStorage == Storage::bf16;

template <Storage kStorage, int kColumns>
using Loader = TileLoader<kStorage, kColumns, kLoaders>;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

template <int kStageBytes>
struct Stages : StageRing<kStages> {
  __device__ __forceinline__ std::byte* data() const { return memory + turn.index * kStageBytes; }
};

// Copies both operands asynchronously.
template <Storage kStorage, int kColumns>
__device__ __forceinline__ void copy_tiles(const PrefillCall& call,
                                           Stages<Loader<kStorage, kColumns>::kStageBytes> stages) {
  const int inputs = to_int(call.linear.inputs);
  const int tiles = count_tiles(call);
  Loader<kStorage, kColumns> loader(call, to_int(threadIdx.x) - kMultipliers);
  typename Loader<kStorage, kColumns>::Slices slices;
  for (int tile = blockIdx.x; tile < tiles; tile += to_int(gridDim.x)) {
    loader.begin(tile_at<kColumns>(call, tile));
    for (int k = 0; k < inputs; k += kTileDepth, stages.next()) {
      stages.wait_until_empty();
      loader.fetch(k, stages.data(), slices);
      stages.full[stages.turn.index].arrive_after_copies();
    }
  }
}

template <Storage kStorage, int kColumns>
__device__ __forceinline__ void load_tiles(const PrefillCall& call,
                                           Stages<Loader<kStorage, kColumns>::kStageBytes> stages) {
  const int inputs = to_int(call.linear.inputs);
  const int tiles = count_tiles(call);
  Loader<kStorage, kColumns> loader(call, to_int(threadIdx.x) - kMultipliers);
  typename Loader<kStorage, kColumns>::Slices here;
  auto last = stages;
  bool pending = false;
  for (int tile = blockIdx.x; tile < tiles; tile += to_int(gridDim.x)) {
    loader.begin(tile_at<kColumns>(call, tile));
    for (int k = 0; k < inputs; k += kTileDepth) {
      typename Loader<kStorage, kColumns>::Slices next;
      stages.wait_until_empty();
      loader.fetch(k, stages.data(), next);
      close_copies();
      if (pending) {
        loader.finish(last.data(), here);
        wait_for_copies<1>();
        publish_to_tensor_cores();
        last.full[last.turn.index].arrive_once_per_warp();
        last.next();
      }
      here = next;
      pending = true;
      stages.next();
    }
  }
  if (!pending) return;
  loader.finish(last.data(), here);
  wait_for_copies<0>();
  publish_to_tensor_cores();
  last.full[last.turn.index].arrive_once_per_warp();
}

// Multiplies the stages of one tile; each is released once the products of the next one have started.
template <bool kCopied, int kStageBytes, int kColumns>
__device__ __forceinline__ void multiply_stages(Stages<kStageBytes>& stages, int warpgroup, int inputs,
                                                float (&sums)[kColumns / 2]) {
  int before = -1;
  for (int k = 0; k < inputs; k += kTileDepth) {
    stages.wait_until_full();
    if constexpr (kCopied) publish_to_tensor_cores();
    const std::uint64_t x = describe_rows(stages.data() + warpgroup * 64 * kRowBytes);
    const std::uint64_t w = describe_rows(stages.data() + kTileRows * kRowBytes);
    begin_products();
#pragma unroll
    for (int step = 0; step < kTileDepth / 16; ++step)
      multiply_64(sums, x + 2 * step, w + 2 * step, k + step > 0);
    close_products();
    wait_for_products<1>();
    if (before >= 0) stages.empty[before].arrive_once_per_warp();
    before = stages.turn.index;
    stages.next();
  }
  wait_for_sums(sums);
  stages.empty[before].arrive_once_per_warp();
}

template <bool kCopied, int kStageBytes, int kColumns>
__device__ __forceinline__ void multiply_tiles(const PrefillCall& call, Stages<kStageBytes> stages) {
  const int warpgroup = to_int(threadIdx.x) / (kMultipliers / 2);
  const int inputs = to_int(call.linear.inputs);
  const int tiles = count_tiles(call);
  const int row = to_int(threadIdx.x) / kWarp * 16 + to_int(threadIdx.x) % kWarp / 4;
  for (int index = blockIdx.x; index < tiles; index += to_int(gridDim.x)) {
    const Tile tile = tile_at<kColumns>(call, index);
    if (tile.rows <= warpgroup * 64) {
      for (int k = 0; k < inputs; k += kTileDepth) {
        stages.wait_until_full();
        stages.empty[stages.turn.index].arrive_once_per_warp();
        stages.next();
      }
      continue;
    }
    float sums[kColumns / 2];
    multiply_stages<kCopied, kStageBytes, kColumns>(stages, warpgroup, inputs, sums);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      store_row<kColumns / 8>(call, out_row(call, tile, row + 8 * half), tile.column,
                              [&](int g, int i) { return sums[4 * g + 2 * half + i]; });
  }
}

#endif

template <Storage kStorage, int kColumns>
__global__ void __launch_bounds__(kMultipliers + kLoaders, 1)
    multiply_tiles_wgmma(const __grid_constant__ PrefillCall call) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  constexpr int kStageBytes = Loader<kStorage, kColumns>::kStageBytes;
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ Barrier full[kStages];
  __shared__ Barrier empty[kStages];
  set_up_ring(full, kOnlyCopied<kStorage> ? kLoaders : kLoaders / kWarp, empty, kMultipliers / kWarp);
  wait_for_inputs();
  allow_successor();
  std::byte* memory = shared + (kAlignment - shared_address(shared) % kAlignment) % kAlignment;
  const Stages<kStageBytes> stages{{memory, full, empty}};
  if (threadIdx.x < kMultipliers) {
    take_registers<kMultiplierRegisters>();
    multiply_tiles<kOnlyCopied<kStorage>, kStageBytes, kColumns>(call, stages);
  } else {
    give_registers<kLoaderRegisters>();
    if constexpr (kOnlyCopied<kStorage>)
      copy_tiles<kStorage, kColumns>(call, stages);
    else
      load_tiles<kStorage, kColumns>(call, stages);
  }
#endif
}

template <int kColumns>
void launch_columns(Context& context, PrefillCall call) {
  call.column_tiles = divide_up(to_int(call.linear.outputs) * call.linear.operands, kColumns);
  const auto blocks = to_unsigned(context.device().multiprocessors);
  with_storage(call.linear.w[0].storage, [&]<Storage kStorage>() {
    launch(context, multiply_tiles_wgmma<kStorage, kColumns>,
           {dim3(blocks), dim3(kMultipliers + kLoaders),
            kStages * Loader<kStorage, kColumns>::kStageBytes + kAlignment},
           call);
  });
}

// Narrow tiles if wide ones would leave half of the multiprocessors idle.
bool too_few_wide_tiles(const PrefillCall& call, int multiprocessors) {
  const long long columns = call.linear.outputs * call.linear.operands;
  const long long rows = call.row_tiles * call.linear.slots;
  return 2 * rows * divide_up<long long>(columns, 256) <= multiprocessors;
}

}  // namespace

void launch_wgmma(Context& context, PrefillCall call) {
  if (too_few_wide_tiles(call, context.device().multiprocessors)) return launch_columns<128>(context, call);
  launch_columns<256>(context, call);
}

}  // namespace sluice::backend::cuda::linear::prefill
