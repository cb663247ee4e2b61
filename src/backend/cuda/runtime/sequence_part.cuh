// The tokens of one sequence and its row of a pool, checked before a kernel touches either.
#pragma once

#include "backend/cuda/runtime/sequences.cuh"

namespace sluice::backend::cuda {

struct SequencePart {
  int begin = 0;
  int end = 0;
  long long slot = 0;

  __device__ __forceinline__ int tokens() const { return end - begin; }
};

// An empty part, and a fault, where the contents are bad; an empty one without a fault where there are no
// tokens. `pool` is the number of pool rows.
__device__ __forceinline__ SequencePart sequence_part(const DeviceSequences& sequences, int b, long long pool,
                                                      Fault* fault) {
  SequencePart part{sequences.begin(b), sequences.end(b), sequences.slot(b)};
  if (part.begin < 0 || part.end < part.begin || part.end > sequences.tokens) {
    report(fault, FaultKind::sequence_start, part.begin < 0 ? part.begin : part.end,
           static_cast<long long>(sequences.tokens) + 1);
    return {};
  }
  if (part.end > part.begin && (part.slot < 0 || part.slot >= pool)) {
    report(fault, FaultKind::pool_slot, part.slot, pool);
    return {};
  }
  return part;
}

}  // namespace sluice::backend::cuda
