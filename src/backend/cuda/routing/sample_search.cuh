// Finding a token without sorting. Logits become keys with the same order. "The first token, in descending
// order, at which a running sum passes a goal" is found digit by digit: the blocks build a histogram of the
// next digit of all keys with the digits found so far, and the last block searches the bins from the top. The
// sums are counts (top_k) or weights (top_p, the draw); all are integers, so the order of atomic additions
// does not matter. Tokens with equal keys have equal weights, so a division gives which of them it is, and
// the last pass finds it by index. Up to three searches of three digits each; the first digit's histogram
// serves all. A row that does not need a search exits its kernels at once.
#pragma once

#include "backend/cuda/routing/sample_row.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::routing {

constexpr int kDigits = 3;
constexpr int kBins = 2048;

__host__ __device__ constexpr int digit_bits(int digit) {
  return digit == 2 ? 10 : 11;
}
__host__ __device__ constexpr int digit_shift(int digit) {
  return digit == 0 ? 21 : digit == 1 ? 10 : 0;
}

enum class Search : int { top_k, top_p, draw };

__device__ inline bool needs(const SampleCall& call, const SampleRow& row, Search search) {
  if (search == Search::top_k) return row.top_k > 0 && row.top_k < call.vocab;
  if (search == Search::top_p) return row.top_p < 1;
  return true;
}

// Searches the bins of one digit from the top for the one in which the sum passes the goal. One warp.
__device__ inline void walk(SampleRow& row, const Sum* weights, const Sum* counts, int digit, bool by_count) {
  const int bins = 1 << digit_bits(digit);
  for (int top = bins - kWarp; top >= 0; top -= kWarp) {
    const int bin = top + kWarp - 1 - to_int(threadIdx.x);  // lane 0 has the highest
    const Sum weight = weights[bin];
    Sum amount = by_count ? counts[bin] : weight;
    Sum all = amount;
    Sum all_weights = weight;
    for (int step = 1; step < kWarp; step *= 2) {
      const Sum lower = __shfl_up_sync(0xffffffffu, all, step);
      const Sum lower_weights = __shfl_up_sync(0xffffffffu, all_weights, step);
      if (to_int(threadIdx.x) >= step) {
        all += lower;
        all_weights += lower_weights;
      }
    }
    const unsigned passed = __ballot_sync(0xffffffffu, row.before + all > row.goal);
    if (passed != 0) {
      const int lane = __ffs(passed) - 1;
      if (to_int(threadIdx.x) == lane) {
        row.before += all - amount;
        row.before_weights += all_weights - weight;
        row.prefix = row.prefix << digit_bits(digit) | static_cast<unsigned>(bin);
      }
      __syncwarp();
      return;
    }
    const Sum sum = __shfl_sync(0xffffffffu, all, kWarp - 1);
    const Sum sum_weights = __shfl_sync(0xffffffffu, all_weights, kWarp - 1);
    if (threadIdx.x == 0) {
      row.before += sum;
      row.before_weights += sum_weights;
    }
    __syncwarp();
  }
}

// The goal of a search, given what the earlier searches kept.
__device__ inline Sum goal_of(const SampleCall& call, long long r, Search search) {
  const SampleRow& row = call.rows[r];
  if (search == Search::top_k) return static_cast<Sum>(row.top_k - 1);
  if (search == Search::top_p) return sampling::kept_goal(row.top_p, row.limit) - 1;
  Sum kept = row.limit;
  if (row.min_p > 0 && row.least_weights < kept) kept = row.least_weights;
  return sampling::draw_target(row.seed, static_cast<Sum>(*call.positions[r]), kept);
}

// Begins the next search, from `search` on, that the row needs. One warp.
__device__ inline void begin_search(const SampleCall& call, long long r, Search search) {
  SampleRow& row = call.rows[r];
  while (!needs(call, row, search)) search = static_cast<Search>(static_cast<int>(search) + 1);
  const Sum goal = goal_of(call, r, search);
  __syncwarp();
  if (threadIdx.x == 0) {
    row.prefix = 0;
    row.goal = goal;
    row.before = 0;
    row.before_weights = 0;
  }
  __syncwarp();
  walk(row, call.first_weights + r * kBins, call.first_counted + r * kBins, 0, search == Search::top_k);
}

// After the last digit: computes the sum up to and including the token found. One warp.
__device__ inline void end_search(const SampleCall& call, long long r, Search search) {
  SampleRow& row = call.rows[r];
  if (threadIdx.x == 0) {
    const Sum weight = sampling::draw_weight(logit_of(row.prefix), largest_logit(row), row.temperature);
    const Sum unit = search == Search::top_k ? 1 : weight;
    row.chosen = unit == 0 ? 0 : (row.goal - row.before) / unit;
    if (search != Search::draw) row.limit = row.before_weights + (row.chosen + 1) * weight;
  }
  __syncwarp();
}

// Builds the histogram of one digit of the keys that begin with the digits found, then searches it for the
// goal.
template <int digit>
__global__ void __launch_bounds__(kSampleThreads) search_digit(SampleCall call, Search search) {
  __shared__ float logits[kSlice];
  __shared__ Sum weights[kBins];
  __shared__ unsigned counts[kBins];
  wait_for_inputs();
  allow_successor();
  const long long r = blockIdx.y;
  SampleRow& row = call.rows[r];
  if (!draws(row) || (digit > 0 && !needs(call, row, search))) return;
  for (int i = threadIdx.x; i < kBins; i += kSampleThreads) {
    weights[i] = 0;
    counts[i] = 0;
  }
  const int count = load_slice(call, r, blockIdx.x, logits);
  const float largest = largest_logit(row);
  const double temperature = row.temperature;
  const unsigned prefix = row.prefix;
  const double least = row.min_p / sampling::kWeightUnit;
  Sum kept = 0;
  for (int i = threadIdx.x; i < count; i += kSampleThreads) {
    const float logit = logits[i] + 0.0f;
    const unsigned key = sample_key(logit);
    if (digit > 0 && key >> digit_shift(digit - 1) != prefix) continue;
    const Sum weight = sampling::draw_weight(logit, largest, temperature);
    if (digit == 0 && static_cast<double>(weight) >= least) kept += weight;
    const unsigned bin = key >> digit_shift(digit) & ((1u << digit_bits(digit)) - 1);
    atomicAdd(&counts[bin], 1u);
    if (weight != 0) atomicAdd(&weights[bin], weight);
  }
  __syncthreads();
  Sum* all_weights = (digit == 0 ? call.first_weights : call.weights) + r * kBins;
  Sum* all_counts = (digit == 0 ? call.first_counted : call.counted) + r * kBins;
  for (int i = threadIdx.x; i < kBins; i += kSampleThreads)
    if (counts[i] != 0) {
      atomicAdd(&all_counts[i], static_cast<Sum>(counts[i]));
      atomicAdd(&all_weights[i], weights[i]);
    }
  if (digit == 0) {
    for (int step = kWarp / 2; step > 0; step /= 2) kept += __shfl_xor_sync(0xffffffffu, kept, step);
    if (threadIdx.x % kWarp == 0 && kept != 0) atomicAdd(&row.least_weights, kept);
  }
  if (!last_block(call.tickets + r)) return;
  if (threadIdx.x < kWarp) {
    if (digit == 0) {
      Sum total = 0;
      for (int i = threadIdx.x; i < kBins; i += kWarp) total += all_weights[i];
      for (int step = kWarp / 2; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
      if (threadIdx.x == 0) row.limit = total;
      __syncwarp();
      begin_search(call, r, Search::top_k);
    } else {
      walk(row, all_weights, all_counts, digit, search == Search::top_k);
      if (digit == kDigits - 1) {
        end_search(call, r, search);
        if (search != Search::draw) begin_search(call, r, static_cast<Search>(static_cast<int>(search) + 1));
      }
    }
  }
  __syncthreads();
  if (digit > 0)  // cleared for the next digit
    for (int i = threadIdx.x; i < kBins; i += kSampleThreads) all_weights[i] = all_counts[i] = 0;
}

// The number of tokens with the key found before thread `threadIdx.x` of a pass over the block's slice; adds
// the pass's number to `before`.
__device__ inline Sum matches_before(bool match, Sum& before, int* found) {
  const int warp = to_int(threadIdx.x) / kWarp;
  const unsigned matches = __ballot_sync(0xffffffffu, match);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) found[warp] = __popc(matches);
  __syncthreads();
  Sum mine = before + static_cast<Sum>(__popc(matches & ((1u << threadIdx.x % kWarp) - 1)));
  for (int w = 0; w < kSampleThreads / kWarp; ++w) {
    if (w < warp) mine += static_cast<Sum>(found[w]);
    before += static_cast<Sum>(found[w]);
  }
  return mine;
}

// Finds the token among those with the key found, by the number of them that precede it. Every block counts
// those of its slice; the last block then knows the slice and searches it in order.
__global__ void __launch_bounds__(kSampleThreads) pick(SampleCall call, bool last_kernel) {
  __shared__ float logits[kSlice];
  __shared__ int found[kSampleThreads / kWarp];
  wait_for_inputs();
  allow_successor();
  const long long r = blockIdx.y;
  const SampleRow& row = call.rows[r];
  if (!draws(row)) {
    if (last_kernel && blockIdx.x == 0 && threadIdx.x == 0) count_choice(call, r);
    return;
  }
  Sum* slices = call.weights + r * call.slices;
  const auto search_slice = [&](long long slice, Sum before, const auto& visit) {
    const int size = load_slice(call, r, slice, logits);
    for (int i = 0; i < kSlice; i += kSampleThreads) {
      const int at = i + to_int(threadIdx.x);
      const bool match = at < size && sample_key(logits[at]) == row.prefix;
      const Sum earlier = matches_before(match, before, found);
      if (match) visit(slice * kSlice + at, earlier);
    }
    return before;
  };
  const Sum matching = search_slice(blockIdx.x, 0, [](long long, Sum) {});
  if (threadIdx.x == 0) slices[blockIdx.x] = matching;
  if (!last_block(call.tickets + r)) return;
  Sum before = 0;
  long long slice = 0;
  while (slice < call.slices - 1 && before + slices[slice] <= row.chosen) before += slices[slice++];
  search_slice(slice, before, [&](long long token, Sum earlier) {
    if (earlier != row.chosen) return;
    *call.ids[r] = to_int(token);
    if (last_kernel) count_choice(call, r);
  });
}

}  // namespace sluice::backend::cuda::routing
