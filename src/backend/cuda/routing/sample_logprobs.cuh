// Log-probabilities of the chosen and of the most likely tokens. Every block sums its slice in a fixed order
// and selects its largest logits one by one; the last block of a row merges these results in the same way.
#pragma once

#include "backend/cuda/routing/sample_row.cuh"
#include "base/integer_cast.h"
#include "sampling/logprobs.h"

namespace sluice::backend::cuda::routing {

// The sum over a block's threads, in a fixed order, for thread 0. `partial` has one entry per warp.
__device__ inline double block_sum_double(double x, double* partial) {
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = x;
  __syncthreads();
  double sum = 0;
  for (int w = 0; w < kSampleThreads / kWarp; ++w) sum += partial[w];
  return sum;
}

// Writes the `wanted` largest of `count` distinct ranks to `found` in descending order; 0 if there are no
// more.
template <class Rank>
__device__ inline void largest_ranks(int count, int wanted, const Rank& rank, Sum* found, Sum* partial) {
  Sum bound = ~Sum{0};
  for (int n = 0; n < kMostLogprobs; ++n) {
    Sum best = 0;
    if (n < wanted && bound > 0)
      for (int i = threadIdx.x; i < count; i += kSampleThreads) {
        const Sum one = rank(i);
        if (one < bound && one > best) best = one;
      }
    bound = block_largest(best, partial);
    if (threadIdx.x == 0) found[n] = bound;
  }
}

// Fills the outputs from entry `first` on with values that mean "none".
__device__ inline void leave_empty(const SampleCall& call, long long r, int first) {
  for (int n = first; n < kMostLogprobs && call.top_ids.data != nullptr; ++n) {
    call.top_ids[r][n] = -1;
    call.top_logprobs[r][n] = __uint_as_float(0xff800000u);
  }
}

__global__ void __launch_bounds__(kSampleThreads) find_logprobs(SampleCall call) {
  __shared__ float logits[kSlice];
  __shared__ Sum partial[kSampleThreads / kWarp];
  __shared__ double partial_sums[kSampleThreads / kWarp];
  __shared__ Sum found[kMostLogprobs];
  wait_for_inputs();
  allow_successor();
  const long long r = blockIdx.y;
  const SampleRow& row = call.rows[r];
  if (row.slot < 0 || row.logprobs < 0 || row.largest == 0) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    if (call.logprob.data != nullptr) *call.logprob[r] = __uint_as_float(0xff800000u);
    leave_empty(call, r, 0);
    count_choice(call, r);
    return;
  }
  const float largest = largest_logit(row);
  const int wanted = row.logprobs < kMostLogprobs ? row.logprobs : kMostLogprobs;
  const long long first_token = static_cast<long long>(blockIdx.x) * kSlice;
  const int count = load_slice(call, r, blockIdx.x, logits);
  double sum = 0;
  for (int i = threadIdx.x; i < count; i += kSampleThreads)
    sum += exp(sampling::log_weight(logits[i], largest));
  sum = block_sum_double(sum, partial_sums);
  const auto rank = [&](int i) {
    return logits[i] == __uint_as_float(0xff800000u) ? Sum{0} : ranked(logits[i], first_token + i);
  };
  largest_ranks(count, wanted, rank, found, partial);
  Sum* tops = call.tops + r * call.slices * kMostLogprobs;
  double* sums = call.sums + r * call.slices;
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = sum;
    for (int n = 0; n < kMostLogprobs; ++n) tops[blockIdx.x * kMostLogprobs + n] = found[n];
  }
  if (!last_block(call.tickets + r)) return;
  const int candidates = to_int(call.slices) * kMostLogprobs;
  largest_ranks(
      candidates, wanted, [&](int i) { return tops[i]; }, found, partial);
  const int id = *call.ids[r];
  load_slice(call, r, id / kSlice, logits);
  if (threadIdx.x != 0) return;
  double total = 0;
  for (long long s = 0; s < call.slices; ++s) total += sums[s];
  const double log_sum = log(total);
  if (call.logprob.data != nullptr)
    *call.logprob[r] = static_cast<float>(sampling::log_weight(logits[id % kSlice], largest) - log_sum);
  int used = 0;
  for (; call.top_ids.data != nullptr && used < wanted && found[used] != 0; ++used) {
    const float logit = logit_of(static_cast<unsigned>(found[used] >> 32));
    call.top_ids[r][used] = index_of(found[used]);
    call.top_logprobs[r][used] = static_cast<float>(sampling::log_weight(logit, largest) - log_sum);
  }
  leave_empty(call, r, used);
  count_choice(call, r);
}

}  // namespace sluice::backend::cuda::routing
