// The tokens of one sequence and its pool row, checked before a kernel uses them.
#pragma once

#include "backend/cuda/runtime/sequences.cuh"

namespace sluice::backend::cuda {

struct SequencePart {
  int begin = 0;
  int end = 0;
  long long slot = 0;

  __device__ __forceinline__ int tokens() const { return end - begin; }
};

// If the contents are invalid, reports a fault and returns an empty part; a sequence without tokens is empty
// without a fault. `pool` is the number of pool rows.
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
