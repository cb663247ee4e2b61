// Counting sort of expert choices by one cluster: each block counts its share of the choices in shared
// memory, gets from the others where its pairs of each expert begin, and writes its share. Devices without
// clusters use one block.
//
// Bytes: the choices once (twice for those past the first 8 of a thread), their order once. The order within
// a bucket varies from run to run; results do not, since a row's sums do not depend on its place in a tile.
#include "backend/cuda/device/cluster.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/linear/prefill/buckets.h"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::prefill {

namespace {

constexpr int kThreads = kMaxBuckets;
constexpr int kHeld = 8;  // choices that a thread keeps between the passes

// The expert of a pair, or -1. Choices are usually contiguous, which needs no division.
__device__ __forceinline__ int expert_of(const LinearCall& call, unsigned pair, Fault* fault) {
  const auto slots = to_unsigned(call.slots);
  const int expert =
      call.experts[call.experts_token == call.slots ? pair
                                                    : pair / slots * call.experts_token + pair % slots];
  if (expert >= 0 && expert < call.matrices) return expert;
  if (fault != nullptr) report(fault, FaultKind::expert_id, expert, call.matrices);
  return -1;
}

// The sum over the threads before this one. To be called by every thread of the block.
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

// The output of sort_choices, in device memory.
struct Sorted {
  int* order;
  BucketTile* tiles;
  int* tile_count;
  int tile_rows;  // maximum rows per tile
};

// An expert's counts over the blocks: of those before this block, and of all.
struct Counted {
  int before = 0;
  int all = 0;
};
template <int kBlocks>
__device__ __forceinline__ Counted count_of_cluster(const int* counter, int rank) {
  if constexpr (kBlocks == 1) return {0, *counter};
  Counted counted;
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
    const int count = load_from_block(counter, to_unsigned(block));
    if (block < rank) counted.before += count;
    counted.all += count;
  }
  return counted;
}

template <int kBlocks>
__global__ void __launch_bounds__(kThreads) sort_choices(LinearCall call, Sorted to, Fault* fault) {
  __shared__ int counters[kMaxBuckets];
  __shared__ int starts[kMaxBuckets];
  __shared__ int partial[kThreads / kWarp];
  const int e = threadIdx.x;
  counters[e] = 0;
  __syncthreads();
  wait_for_inputs();
  allow_successor();
  const auto pairs = to_unsigned(call.tokens * call.slots);
  const unsigned share = divide_up(pairs, to_unsigned(kBlocks));
  const unsigned begin = blockIdx.x * share + threadIdx.x;
  const unsigned end = min(pairs, (blockIdx.x + 1) * share);
  // The first pairs of a thread are kept in registers: their expert and their place among the block's pairs
  // of that expert.
  int experts[kHeld];
  int places[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const unsigned pair = begin + to_unsigned(i) * kThreads;
    experts[i] = pair < end ? expert_of(call, pair, fault) : -1;
  }
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    if (experts[i] >= 0) places[i] = atomicAdd(&counters[experts[i]], 1);
  const unsigned others = begin + kHeld * kThreads;
  __syncthreads();  // the first places belong to those
#pragma unroll 8
  for (unsigned pair = others; pair < end; pair += kThreads) {
    const int expert = expert_of(call, pair, fault);
    if (expert >= 0) atomicAdd(&counters[expert], 1);
  }
  __syncthreads();
  if constexpr (kBlocks > 1) arrive_in_cluster(), wait_for_cluster();
  const Counted counted = count_of_cluster<kBlocks>(&counters[e], to_int(blockIdx.x));
  if constexpr (kBlocks > 1) arrive_in_cluster();
  const int first = exclusive_sum(counted.all, partial);
  const int own_tiles = divide_up(counted.all, to.tile_rows);
  const int first_tile = exclusive_sum(own_tiles, partial);
  if (blockIdx.x == 0) {
    for (int i = 0; i < own_tiles; ++i)
      to.tiles[first_tile + i] = {e, first + i * to.tile_rows,
                                  min(to.tile_rows, counted.all - i * to.tile_rows)};
    if (e == kThreads - 1) *to.tile_count = first_tile + own_tiles;
  }
  if constexpr (kBlocks > 1) wait_for_cluster();  // before counters change, and before a block exits
  starts[e] = first + counted.before;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    if (experts[i] >= 0) to.order[starts[experts[i]] + places[i]] = to_int(begin + to_unsigned(i) * kThreads);
#pragma unroll 8
  for (unsigned pair = others; pair < end; pair += kThreads) {
    const int expert = expert_of(call, pair, nullptr);
    if (expert >= 0) to.order[starts[expert] + atomicSub(&counters[expert], 1) - 1] = to_int(pair);
  }
}

}  // namespace

std::size_t bucket_bytes(const LinearCall& call, int tile_rows) {
  const std::size_t pairs = call.tokens * call.slots;
  return sizeof(int) * (1 + pairs) +
         sizeof(BucketTile) * (pairs / to_size(tile_rows) + to_size(call.matrices));
}

Buckets sort_by_expert(Context& context, const LinearCall& call, int tile_rows, std::byte* memory) {
  const std::size_t pairs = call.tokens * call.slots;
  auto* tile_count = reinterpret_cast<int*>(memory);
  int* order = tile_count + 1;
  auto* tiles = reinterpret_cast<BucketTile*>(order + pairs);
  const Sorted sorted{order, tiles, tile_count, tile_rows};
  constexpr unsigned kCluster = 8;
  if (context.device().compute_capability >= 90 && pairs > kThreads)
    launch_clusters(context, sort_choices<kCluster>, kCluster, {dim3(kCluster), dim3(kThreads)}, call, sorted,
                    context.fault());
  else
    launch(context, sort_choices<1>, {dim3(1), dim3(kThreads)}, call, sorted, context.fault());
  return {order, tiles, tile_count};
}

}  // namespace sluice::backend::cuda::linear::prefill
