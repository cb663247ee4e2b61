// Where a call saves intermediate states.
#pragma once

#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/runtime/sequences.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::delta {

struct SavePlaces {
  const int* at = nullptr;
  int count = 0;

  template <class Op>
  explicit SavePlaces(const Op& op)
      : at(static_cast<const int*>(op.save_at.data)),
        count(op.save_at.present() ? to_int(op.save_at.dim(0)) : 0) {}

  // Which save is of the state after the call's tokens before `end`; -1: none. To be called by a whole warp.
  __device__ __forceinline__ int find(int end) const {
    const int lane = to_int(threadIdx.x) % kWarp;
    for (int first = 0; first < count; first += kWarp) {
      const unsigned hits = __ballot_sync(0xffffffffu, first + lane < count && at[first + lane] == end);
      if (hits != 0) return first + __ffs(hits) - 1;
    }
    return -1;
  }
  // Reports positions at which no state can be saved. To be called by one block of a launch.
  __device__ inline void check(const DeviceSequences& sequences, Fault* fault) const {
    for (int i = threadIdx.x; i < count; i += to_int(blockDim.x)) {
      const int end = at[i];
      if (end < 0) continue;
      const bool inside = end > 0 && end <= sequences.tokens;
      if (!inside || (end - sequences.begin(sequences.of_token(end - 1))) % 64 != 0)
        report(fault, FaultKind::save_place, end, static_cast<long long>(sequences.tokens) + 1);
    }
  }
};

}  // namespace sluice::backend::cuda::delta
