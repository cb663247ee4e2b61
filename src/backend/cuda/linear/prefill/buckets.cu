// Counting sort of expert choices: one block, two passes over the choices with counters in shared memory.
//
// Bytes: the choices twice, their order once; 65,536 choices take some 10 us, small beside the products they
// serve. The order within a bucket varies from run to run; results do not, since a row's sums do not depend
// on its place in a tile.
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/linear/prefill/buckets.h"
#include "backend/cuda/runtime/launch.h"

namespace sluice::backend::cuda::linear::prefill {

namespace {

constexpr int kThreads = kMaxBuckets;

// The expert of a pair, or -1. Choices mostly lie without gaps, where no division is needed.
__device__ __forceinline__ int expert_of(const LinearCall& call, unsigned pair, Fault* fault) {
  const auto slots = static_cast<unsigned>(call.slots);
  const int expert =
      call.experts[call.experts_token == call.slots ? pair
                                                    : pair / slots * call.experts_token + pair % slots];
  if (expert >= 0 && expert < call.matrices) return expert;
  if (fault != nullptr) report(fault, FaultKind::expert_id, expert, call.matrices);
  return -1;
}

// The sum over the threads before this one; every thread of the block calls it.
__device__ __forceinline__ int exclusive_sum(int value, int* partial) {
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  int sum = value;
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const int below = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += below;
  }
  __syncthreads();
  if (lane == kWarp - 1) partial[warp] = sum;
  __syncthreads();
  int before = 0;
  for (int w = 0; w < warp; ++w) before += partial[w];
  return before + sum - value;
}

__global__ void __launch_bounds__(kThreads) sort_choices(LinearCall call, int tile_rows, int* order,
                                                         BucketTile* tiles, int* tile_count, Fault* fault) {
  __shared__ int counters[kMaxBuckets];
  __shared__ int partial[kThreads / kWarp];
  const auto e = static_cast<int>(threadIdx.x);
  counters[e] = 0;
  __syncthreads();
  wait_for_inputs();
  allow_successor();
  const auto pairs = static_cast<unsigned>(call.tokens * call.slots);
#pragma unroll 8
  for (unsigned pair = threadIdx.x; pair < pairs; pair += kThreads) {
    const int expert = expert_of(call, pair, fault);
    if (expert >= 0) atomicAdd(&counters[expert], 1);
  }
  __syncthreads();
  const int count = counters[e];
  const int first = exclusive_sum(count, partial);
  const int own_tiles = divide_up(count, tile_rows);
  const int first_tile = exclusive_sum(own_tiles, partial);
  for (int i = 0; i < own_tiles; ++i)
    tiles[first_tile + i] = {e, first + i * tile_rows, min(tile_rows, count - i * tile_rows)};
  if (e == kThreads - 1) *tile_count = first_tile + own_tiles;
  counters[e] = first;
  __syncthreads();
#pragma unroll 8
  for (unsigned pair = threadIdx.x; pair < pairs; pair += kThreads) {
    const int expert = expert_of(call, pair, nullptr);
    if (expert >= 0) order[atomicAdd(&counters[expert], 1)] = static_cast<int>(pair);
  }
}

}  // namespace

Buckets sort_by_expert(Context& context, const LinearCall& call, int tile_rows) {
  const auto pairs = static_cast<std::size_t>(call.tokens * call.slots);
  const std::size_t most_tiles =
      pairs / static_cast<std::size_t>(tile_rows) + static_cast<std::size_t>(call.matrices);
  std::byte* memory = context.scratch(sizeof(int) * (1 + pairs) + sizeof(BucketTile) * most_tiles);
  auto* tile_count = reinterpret_cast<int*>(memory);
  int* order = tile_count + 1;
  auto* tiles = reinterpret_cast<BucketTile*>(order + pairs);
  launch(context, sort_choices, {dim3(1), dim3(kThreads)}, call, tile_rows, order, tiles, tile_count,
         context.fault());
  return {order, tiles, tile_count};
}

}  // namespace sluice::backend::cuda::linear::prefill
