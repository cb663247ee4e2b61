// Which rows of a call a block of the decode kernels multiplies.
#pragma once

#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/linear/decode/plan.h"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

// The rows of the call for one matrix, a pass at a time.
class RowList {
 public:
  __device__ __forceinline__ RowList(const LinearCall& call, const RowPlan& plan, std::byte* shared)
      : call_(call),
        plan_(plan),
        rows_(reinterpret_cast<PassRow*>(shared + plan.rows)),
        marks_(reinterpret_cast<unsigned*>(shared + plan.marks)),
        slot_(to_int(blockIdx.y)) {
    // A division takes as long as a load from shared memory, so it is avoided if there is only one pass.
    if (!plan.listed && slot_ >= call.slots) {
      pass_ = slot_ / to_int(call.slots);
      slot_ -= pass_ * to_int(call.slots);
    }
  }

  // The block's slot, if that follows from its index.
  __device__ __forceinline__ int slot() const { return slot_; }

  // With experts: finds the block's matrix and marks its rows; -1 if another block computes it, or no row
  // chose it. To be called by the whole block.
  __device__ __forceinline__ int find_matrix(Fault* fault) {
    if (!plan_.listed) return checked(call_.experts[slot_], fault);
    // The last matrix first: a shared expert comes after the others and is used by every token.
    const int mine =
        plan_.by_matrix ? to_int(call_.matrices) - 1 - slot_ : to_int(call_.matrix_of(slot_, fault));
    const int count = to_int(call_.tokens * call_.slots);
    bool earlier = false;
    bool any = false;
    for (int base = 0; base < count; base += kDecodeWarps * kWarp) {
      const int row = base + to_int(threadIdx.x);
      const bool same = row < count && mine >= 0 && call_.matrix_of(row, fault) == mine;
      const unsigned mark = __ballot_sync(0xffffffffu, same);
      if (threadIdx.x % kWarp == 0 && row < count) marks_[row / kWarp] = mark;
      any = any || same;
      earlier = earlier || (same && !plan_.by_matrix && row < slot_);
    }
    const bool taken = __syncthreads_or(earlier) != 0;
    const bool wanted = __syncthreads_or(any) != 0;
    mark_ = marks_[0];
    return wanted && !taken ? mine : -1;
  }
  // Advances to the next rows and returns their number; 0 when none are left. To be called by the whole
  // block, when the previous rows are no longer read.
  __device__ __forceinline__ int next() {
    const int thread = threadIdx.x;
    int count = 0;
    if (plan_.listed) {
      // All threads count in step; thread i keeps row i.
      int row = 0;
      const int words = (to_int(call_.tokens * call_.slots) + kWarp - 1) / kWarp;
      while (word_ < words && count < plan_.tokens) {
        if (mark_ == 0) {
          if (++word_ < words) mark_ = marks_[word_];
          continue;
        }
        if (thread == count) row = word_ * kWarp + __ffs(mark_) - 1;
        mark_ &= mark_ - 1;
        ++count;
      }
      if (thread < count) rows_[thread] = {call_.x_offset(row), call_.out_offset(row)};
    } else if (word_ == 0) {
      word_ = 1;
      const int first = pass_ * plan_.tokens;
      count = min(plan_.tokens, to_int(call_.tokens) - first);
      const long long token = first + thread;
      if (thread < count)
        rows_[thread] = {token * call_.x_token + slot_ * call_.x_slot,
                         token * call_.out_token + slot_ * call_.out_slot};
    }
    __syncthreads();
    return count;
  }
  __device__ __forceinline__ const PassRow& operator[](int i) const { return rows_[i]; }

 private:
  __device__ __forceinline__ int checked(int expert, Fault* fault) const {
    if (expert >= 0 && expert < call_.matrices) return expert;
    report(fault, FaultKind::expert_id, expert, call_.matrices);
    return -1;
  }

  const LinearCall& call_;
  const RowPlan& plan_;
  PassRow* rows_;
  unsigned* marks_;
  int slot_;
  int pass_ = 0;
  int word_ = 0;
  unsigned mark_ = 0;  // bits of marks_[word_] that are not consumed yet
};

}  // namespace sluice::backend::cuda::linear::decode
