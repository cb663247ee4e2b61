// out = sum_s e^(m_s - m) sums_s / sum_s e^(m_s - m) totals_s over the splits s that contain visible rows.
//
// One block per token, head and 32 columns: 8 threads of 4 columns by 32 groups of splits, so that all
// partial results of a long cache are in flight at once. Bytes: every partial result once (from the L2
// cache). The order of summation depends only on the number of splits.
#include "backend/cuda/attention/attend.cuh"
#include "backend/cuda/device/warp.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention {

namespace {

constexpr int kColumns = 32;
constexpr int kGroups = 32;
constexpr int kThreads = kColumns / 4 * kGroups;

__device__ __forceinline__ void add_scaled(float4& sum, const float4& x, float factor) {
  sum.x += x.x * factor;
  sum.y += x.y * factor;
  sum.z += x.z * factor;
  sum.w += x.w * factor;
}

__global__ void __launch_bounds__(kThreads) merge_kernel(AttendCall call) {
  __shared__ float maxima[kThreads / kWarp];
  __shared__ float4 sums[kGroups][kColumns / 4];
  __shared__ float totals[kGroups];
  wait_for_inputs();
  allow_successor();
  const int local_token = blockIdx.x;
  const int head = blockIdx.y;
  const TokenTile tile = tile_of_token(call, call.first_token + local_token);
  if (tile.begin == tile.end) return;
  const long long split_rows = static_cast<long long>(call.split_rows)
                               << call.doublings(tile.last(tile.begin));
  const int begin = to_int(tile.first(tile.begin) / split_rows);
  const int end = to_int(tile.last(tile.begin) / split_rows) + 1;
  const long long row = call.partials.index(local_token, call.heads, head, 0);
  const float2* scales = call.partials.scales + row;
  float maximum = -INFINITY;
  for (int s = begin + to_int(threadIdx.x); s < end; s += kThreads) maximum = fmaxf(maximum, scales[s].x);
  maximum = warp_max(maximum);
  if (threadIdx.x % kWarp == 0) maxima[threadIdx.x / kWarp] = maximum;
  __syncthreads();
  for (const float other : maxima) maximum = fmaxf(maximum, other);

  const int lane = to_int(threadIdx.x) % (kColumns / 4);
  const int group = to_int(threadIdx.x) / (kColumns / 4);
  const int column = to_int(blockIdx.z) * kColumns + lane * 4;
  const bool inside = column < call.partials.width;
  const float* part = call.partials.sums + row * call.partials.width + column;
  float4 sum = make_float4(0, 0, 0, 0);
  float total = 0;
#pragma unroll 4
  for (int s = begin + group; s < end; s += kGroups) {
    const float2 scale = scales[s];
    const float factor = expf(scale.x - maximum);
    total += scale.y * factor;
    if (inside)
      add_scaled(sum,
                 *reinterpret_cast<const float4*>(part + static_cast<long long>(s) * call.partials.width),
                 factor);
  }
  sums[group][lane] = sum;
  if (lane == 0) totals[group] = total;
  __syncthreads();
  if (threadIdx.x >= kColumns) return;
  float value = 0;
  total = 0;
  for (int g = 0; g < kGroups; ++g) {
    value += reinterpret_cast<const float*>(sums[g])[threadIdx.x];
    total += totals[g];
  }
  const int own = to_int(blockIdx.z) * kColumns + to_int(threadIdx.x);
  if (own < call.out.width) call.out.set(tile.begin, head, own, value / total);
}

}  // namespace

void merge_splits(Context& context, const AttendCall& call, int tokens) {
  const dim3 blocks(to_unsigned(tokens), to_unsigned(call.heads),
                    to_unsigned(divide_up(call.partials.width, kColumns)));
  launch(context, merge_kernel, {blocks, dim3(kThreads)}, call);
}

}  // namespace sluice::backend::cuda::attention
