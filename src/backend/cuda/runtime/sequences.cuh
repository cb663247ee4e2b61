// The sequence fields of an op as kernels read them: all are in device memory, so a recorded program serves
// every position.
#pragma once

#include "backend/cuda/runtime/fault.h"
#include "base/integer_cast.h"
#include "sluice/ops/field.h"

namespace sluice::backend::cuda {

// One value per sequence, or a single one for the only sequence.
struct SequenceNumber {
  const int* values = nullptr;
  long long value = 0;

  SequenceNumber() = default;
  explicit SequenceNumber(const ops::SequenceValue& from)
      : values(static_cast<const int*>(from.per_sequence.data)), value(from.value) {}
  __device__ __forceinline__ long long operator[](int b) const {
    return values != nullptr ? values[b] : value;
  }
};

struct DeviceSequences {
  const int* starts = nullptr;  // null: one sequence of all tokens and no pool
  const int* slots = nullptr;
  int count = 1;
  int tokens = 0;

  // One sequence of all tokens.
  explicit DeviceSequences(std::int64_t all_tokens) : tokens(to_int(all_tokens)) {}
  template <class Op>
  DeviceSequences(const Op& op, std::int64_t all_tokens)
      : starts(static_cast<const int*>(op.seq_starts.data)),
        slots(static_cast<const int*>(op.slots.data)),
        count(op.seq_starts.present() ? to_int(op.seq_starts.dim(0) - 1) : 1),
        tokens(to_int(all_tokens)) {}

  __device__ __forceinline__ int begin(int b) const { return starts != nullptr ? starts[b] : 0; }
  __device__ __forceinline__ int end(int b) const { return starts != nullptr ? starts[b + 1] : tokens; }
  __device__ __forceinline__ long long slot(int b) const {
    return starts == nullptr ? 0 : slots != nullptr ? slots[b] : b;
  }
  // The sequence that contains token t: the last one that begins at or before it.
  __device__ __forceinline__ int of_token(int t) const {
    int low = 0;
    int high = count - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (begin(middle) <= t)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
};

// Elements between pool rows; 0 without a pool.
template <class AnyView>
long long pool_stride(const AnyView& view, bool pooled) {
  return pooled ? view.strides[0] : 0;
}

}  // namespace sluice::backend::cuda
