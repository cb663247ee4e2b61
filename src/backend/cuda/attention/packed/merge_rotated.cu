// out = R^-1 (sum_s 2^(m_s - m) sums_s / sum_s 2^(m_s - m) totals_s) over the splits s that contain visible
// rows; R is the rotation of packed caches, not undone if the output stays rotated.
//
// One block per token and head: columns by groups of splits, so that all partial results are in flight at
// once; one warp then combines the groups and rotates the row back. Bytes: every partial result once (from
// the L2 cache). The order of summation depends only on the number of splits.
#include "backend/cuda/attention/packed/attend.h"
#include "backend/cuda/cache/rotation.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention::packed {

namespace {

constexpr int kThreads = 512;

template <int kWidth>
__global__ void __launch_bounds__(kThreads) merge_kernel(const __grid_constant__ RotatedMerge merge) {
  constexpr int kColumns = kWidth / 4;
  constexpr int kGroups = kThreads / kColumns;
  constexpr int kCount = kWidth / kWarp;
  __shared__ float4 sums[kGroups][kColumns];
  wait_for_inputs();
  allow_successor();
  const AttendCall& call = merge.attend;
  const int local_token = blockIdx.x;
  const int head = blockIdx.y;
  const TokenTile tile = tile_of_token(call, call.first_token + local_token);
  if (tile.begin == tile.end) return;
  const long long last = tile.last(tile.begin);
  const long long split_rows = static_cast<long long>(call.split_rows) << call.doublings(last);
  const int begin = to_int(tile.first(tile.begin) / split_rows);
  const int end = to_int(last / split_rows) + 1;
  const long long row = call.partials.index(local_token, call.heads, head, 0);
  const float2* scales = call.partials.scales + row;
  const int lane = to_int(threadIdx.x) % kWarp;
  float maximum = -INFINITY;
  for (int s = begin + lane; s < end; s += kWarp) maximum = fmaxf(maximum, scales[s].x);
  maximum = warp_max(maximum);

  const int column = to_int(threadIdx.x) % kColumns;
  const int group = to_int(threadIdx.x) / kColumns;
  const auto* parts = reinterpret_cast<const float4*>(call.partials.sums + row * kWidth) + column;
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
  for (int s = begin + group; s < end; s += kGroups) {
    const float4 part = parts[static_cast<long long>(s) * kColumns];
    const float factor = exp2f(scales[s].x - maximum);
    sum.x += part.x * factor;
    sum.y += part.y * factor;
    sum.z += part.z * factor;
    sum.w += part.w * factor;
  }
  sums[group][column] = sum;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  float total = 0;
  for (int s = begin + lane; s < end; s += kWarp) total += scales[s].y * exp2f(scales[s].x - maximum);
  total = warp_sum(total);
  float x[kCount];
#pragma unroll
  for (int r = 0; r < kCount; ++r) {
    x[r] = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) x[r] += reinterpret_cast<const float*>(sums[g])[lane + r * kWarp];
    x[r] /= total;
  }
  if (!merge.rotated) {
    cache::transform(x);
    const float root = rsqrtf(static_cast<float>(kWidth));
#pragma unroll
    for (int r = 0; r < kCount; ++r)
      x[r] *= root * static_cast<float>(cache::sign_of(merge.signs, lane + r * kWarp));
  }
#pragma unroll
  for (int r = 0; r < kCount; ++r) call.out.set(tile.begin, head, lane + r * kWarp, x[r]);
}

}  // namespace

void merge_rotated(Context& context, const RotatedMerge& merge, int tokens) {
  const Grid grid{dim3(to_unsigned(tokens), to_unsigned(merge.attend.heads)), dim3(kThreads)};
  const int width = merge.attend.partials.width;
  if (width == 128) return launch(context, merge_kernel<128>, grid, merge);
  if (width == 256) return launch(context, merge_kernel<256>, grid, merge);
  launch(context, merge_kernel<512>, grid, merge);
}

}  // namespace sluice::backend::cuda::attention::packed
