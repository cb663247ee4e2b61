// The rows of a call, sorted by expert and divided into passes of eight.
#pragma once

#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/linear/decode/int4_experts.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

// Up to eight rows that are multiplied by one expert at once.
struct ExpertPass {
  int expert;
  unsigned short first;  // of the sorted rows
  unsigned short count;
};

// Every block sorts for itself, which costs less than another launch. The order must be the same in all
// blocks, since they share the rounds of a pass: an expert's rows keep their order in the call.
class ExpertPasses {
 public:
  __device__ __forceinline__ ExpertPasses(const LinearCall& call, const ExpertPlan& plan, std::byte* shared)
      : call_(call),
        plan_(plan),
        numbers_(reinterpret_cast<int*>(shared + plan.numbers)),
        starts_(reinterpret_cast<unsigned short*>(shared + plan.starts)),
        passes_(reinterpret_cast<ExpertPass*>(shared + plan.passes)),
        ids_(reinterpret_cast<unsigned short*>(shared + plan.ids)),
        ranks_(reinterpret_cast<unsigned short*>(shared + plan.ranks)),
        sorted_(reinterpret_cast<unsigned short*>(shared + plan.sorted)) {}

  // Returns the number of passes. To be called by the whole block.
  __device__ __forceinline__ int find(Fault* fault) {
    const int thread = threadIdx.x;
    const int warp = thread / kWarp;
    const int matrices = to_int(call_.matrices);
    for (int i = thread; i < kExpertWarps * matrices; i += kThreads) starts_[i] = 0;
    __syncthreads();
    // A warp sorts a contiguous range of rows.
    const int share = (plan_.rows + kThreads - 1) / kThreads * kWarp;
    const int begin = min(warp * share, plan_.rows);
    const int end = min(begin + share, plan_.rows);
    unsigned short* const own = starts_ + warp * matrices;
    for (int first = begin; first < end; first += kWarp) rank(first + thread % kWarp, end, own, fault);
    __syncthreads();
    list_passes(matrices);
    __syncthreads();
    for (int row = begin + thread % kWarp; row < end; row += kWarp)
      if (ids_[row] != kNone) sorted_[own[ids_[row]] + ranks_[row]] = static_cast<unsigned short>(row);
    __syncthreads();
    return total_passes();
  }
  __device__ __forceinline__ const ExpertPass& operator[](int pass) const { return passes_[pass]; }
  __device__ __forceinline__ int row(int i) const { return sorted_[i]; }

 private:
  static constexpr int kThreads = kExpertWarps * kWarp;
  static constexpr unsigned short kNone = 0xffff;

  // Ranks rows by expert within the warp's range, which ends at `end`; `counts` is the warp's number of rows
  // per expert so far. To be called by the whole warp.
  __device__ __forceinline__ void rank(int row, int end, unsigned short* counts, Fault* fault) {
    const unsigned lane = threadIdx.x % kWarp;
    const int expert = row < end ? to_int(call_.matrix_of(row, fault)) : -1;
    const unsigned alike = __match_any_sync(0xffffffffu, expert);
    const int before = __popc(alike & ((1u << lane) - 1));
    const int counted = expert >= 0 ? counts[expert] : 0;
    __syncwarp();
    if (expert >= 0 && before == 0) counts[expert] = static_cast<unsigned short>(counted + __popc(alike));
    __syncwarp();
    if (row >= end) return;
    ids_[row] = expert >= 0 ? static_cast<unsigned short>(expert) : kNone;
    ranks_[row] = static_cast<unsigned short>(counted + before);
  }
  // Each thread lists the passes of a range of experts and converts counts of rows to start positions.
  __device__ __forceinline__ void list_passes(int matrices) {
    const int per = (matrices + kThreads - 1) / kThreads;
    const int begin = min(to_int(threadIdx.x) * per, matrices);
    const int end = min(begin + per, matrices);
    unsigned mine = 0;  // upper half: passes, lower half: rows
    for (int e = begin; e < end; ++e) mine += cost(count_of(e, matrices));
    const unsigned before = sum_before(mine);
    int first = to_int(before & 0xffffu);
    int pass = to_int(before >> 16);
    for (int e = begin; e < end; ++e) {
      const int count = count_of(e, matrices);
      for (int done = 0; done < count; done += kTileColumns)
        passes_[pass++] = {e, static_cast<unsigned short>(first + done),
                           static_cast<unsigned short>(min(count - done, kTileColumns))};
#pragma unroll
      for (int w = 0; w < kExpertWarps; ++w) {
        const int of_warp = starts_[w * matrices + e];
        starts_[w * matrices + e] = static_cast<unsigned short>(first);
        first += of_warp;
      }
    }
    if (threadIdx.x == kThreads - 1) total_passes() = pass;
  }
  __device__ __forceinline__ int count_of(int expert, int matrices) const {
    int count = 0;
#pragma unroll
    for (int w = 0; w < kExpertWarps; ++w) count += starts_[w * matrices + expert];
    return count;
  }
  __device__ static __forceinline__ unsigned cost(int count) {
    return to_unsigned((count + kTileColumns - 1) / kTileColumns) << 16 | to_unsigned(count);
  }
  // The sum over all preceding threads. To be called by the whole block.
  __device__ __forceinline__ unsigned sum_before(unsigned mine) const {
    const int lane = to_int(threadIdx.x) % kWarp;
    const int warp = to_int(threadIdx.x) / kWarp;
    unsigned sum = mine;
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
      const unsigned other = __shfl_up_sync(0xffffffffu, sum, step);
      if (lane >= step) sum += other;
    }
    unsigned* const of_warps = reinterpret_cast<unsigned*>(numbers_);
    if (lane == kWarp - 1) of_warps[warp] = sum;
    __syncthreads();
    unsigned before = sum - mine;
    for (int w = 0; w < warp; ++w) before += of_warps[w];
    return before;
  }
  __device__ __forceinline__ int& total_passes() const {
    return numbers_[kExpertWarps];
  }

  const LinearCall& call_;
  const ExpertPlan& plan_;
  int* numbers_;            // kBlockNumbers
  unsigned short* starts_;  // by warp and expert: first the number of rows, then their start
  ExpertPass* passes_;
  unsigned short* ids_;
  unsigned short* ranks_;
  unsigned short* sorted_;
};

}  // namespace sluice::backend::cuda::linear::decode
