// One row of the sample op: its settings, the state of its search, and its logits slice by slice, after
// penalties, bias and mask.
#pragma once

#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"
#include "sampling/draw.h"
#include "sampling/penalty.h"
#include "sluice/ops/routing/sample.h"

namespace sluice::backend::cuda::routing {

using Sum = unsigned long long;

constexpr int kSampleThreads = 512;
constexpr int kSlice = 4096;  // logits per block
constexpr int kMostLogprobs = to_int(ops::Sample::kMostLogprobs);

// A setting of the op: one number, or one per slot.
struct RealSetting {
  double value = 0;
  const float* per_slot = nullptr;

  explicit RealSetting(const ops::RowValue<double>& from)
      : value(from.value), per_slot(static_cast<const float*>(from.per_row.data)) {}
  __device__ double operator[](long long slot) const {
    return per_slot != nullptr ? static_cast<double>(per_slot[slot]) : value;
  }
};
struct IntegerSetting {
  long long value = 0;
  const int* per_slot = nullptr;

  explicit IntegerSetting(const ops::RowValue<std::int64_t>& from)
      : value(from.value), per_slot(static_cast<const int*>(from.per_row.data)) {}
  __device__ long long operator[](long long slot) const {
    return per_slot != nullptr ? per_slot[slot] : value;
  }
};
struct SeedSetting {
  Sum value = 0;
  const unsigned* words = nullptr;

  explicit SeedSetting(const ops::RowValue<std::uint64_t>& from)
      : value(from.value), words(static_cast<const unsigned*>(from.per_row.data)) {}
  __device__ Sum operator[](long long slot) const {
    return words != nullptr ? words[2 * slot] | static_cast<Sum>(words[2 * slot + 1]) << 32 : value;
  }
};

struct SampleRow {
  long long slot;  // -1: the row is skipped
  double temperature;
  double top_p;
  double min_p;
  long long top_k;
  Sum seed;
  sampling::Penalties penalties;
  int logprobs;
  Sum largest;  // key and complement of the index: the maximum has the lowest index among equals; 0: none
  Sum least_weights;  // of the tokens that min_p keeps
  Sum limit;          // weights of the tokens kept so far
  // The current search.
  unsigned prefix;  // digits found
  Sum goal;
  Sum before;          // sum of the bins above
  Sum before_weights;  // their weights
  Sum chosen;          // which one of the tokens with that key
};

// A field with one row per slot; absent: a null pointer.
template <class T>
struct SlotRows {
  T* data = nullptr;
  long long stride = 0;

  template <class AnyView>
  explicit SlotRows(const AnyView& view)
      : data(static_cast<T*>(view.data)), stride(view.present() ? view.strides[0] : 0) {}
  __device__ T* operator[](long long slot) const { return data + slot * stride; }
};

struct SampleCall {
  SlotRows<const float> logits;  // by row of the call
  SlotRows<int> positions;
  SlotRows<int> ids;
  const int* slots;
  long long vocab;
  long long pool;  // number of slots
  long long biases;
  SlotRows<int> counts;
  SlotRows<const int> bias_ids;
  SlotRows<const float> bias;
  SlotRows<const unsigned char> allowed;
  SlotRows<float> logprob;
  SlotRows<int> top_ids;
  SlotRows<float> top_logprobs;
  RealSetting temperature;
  RealSetting top_p;
  RealSetting min_p;
  IntegerSetting top_k;
  SeedSetting seed;
  RealSetting repetition_penalty;
  RealSetting presence_penalty;
  RealSetting frequency_penalty;
  IntegerSetting logprobs;
  long long slices;  // blocks per row
  SampleRow* rows = nullptr;
  Sum* weights = nullptr;        // [rows, kBins], histogram of the current digit
  Sum* counted = nullptr;        // likewise
  Sum* first_weights = nullptr;  // those of the first digit, kept
  Sum* first_counted = nullptr;
  Sum* tops = nullptr;     // [rows, slices, kMostLogprobs], the largest of each slice
  double* sums = nullptr;  // [rows, slices] of exp(logit - largest)
  int* tickets = nullptr;
  Fault* fault = nullptr;

  explicit SampleCall(const ops::Sample& op)
      : logits(op.logits),
        positions(op.positions),
        ids(op.ids),
        slots(static_cast<const int*>(op.slots.data)),
        vocab(op.logits.dim(1)),
        pool(op.logits.dim(0)),
        biases(op.bias_ids.present() ? op.bias_ids.dim(1) : 0),
        counts(op.counts),
        bias_ids(op.bias_ids),
        bias(op.bias),
        allowed(op.allowed),
        logprob(op.logprob),
        top_ids(op.top_ids),
        top_logprobs(op.top_logprobs),
        temperature(op.temperature),
        top_p(op.top_p),
        min_p(op.min_p),
        top_k(op.top_k),
        seed(op.seed),
        repetition_penalty(op.repetition_penalty),
        presence_penalty(op.presence_penalty),
        frequency_penalty(op.frequency_penalty),
        logprobs(op.logprobs),
        slices(divide_up<long long>(op.logits.dim(1), kSlice)) {}
};

__device__ inline unsigned sample_key(float logit) {
  const unsigned bits = __float_as_uint(logit + 0.0f);  // -0 equals 0
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ inline float logit_of(unsigned key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}
__device__ inline float largest_logit(const SampleRow& row) {
  return logit_of(static_cast<unsigned>(row.largest >> 32));
}
// Orders by logit and, among equal ones, lower indices first; never 0.
__device__ inline Sum ranked(float logit, long long index) {
  return static_cast<Sum>(sample_key(logit)) << 32 | (0xffffffffu - static_cast<unsigned>(index));
}
__device__ inline int index_of(Sum rank) {
  return static_cast<int>(0xffffffffu - static_cast<unsigned>(rank));
}

__device__ inline bool draws(const SampleRow& row) {
  return row.slot >= 0 && row.temperature > 0 && isfinite(largest_logit(row));
}

__device__ inline bool allows(const SampleCall& call, const SampleRow& row, long long token) {
  return call.allowed.data == nullptr || (call.allowed[row.slot][token / 8] >> token % 8 & 1) != 0;
}

// Whether this is the last block of its row to arrive; its threads then see what the others wrote.
__device__ inline bool last_block(int* ticket) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(ticket, 1) == to_int(gridDim.x) - 1;
    if (last) *ticket = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}

// Loads the logits of a slice, after penalties, bias and mask, into shared memory. All threads of the block
// take part; returns the number of logits.
__device__ inline int load_slice(const SampleCall& call, long long r, long long slice, float* shared) {
  const SampleRow& row = call.rows[r];
  const long long begin = slice * kSlice;
  const int count = to_int(call.vocab - begin < kSlice ? call.vocab - begin : kSlice);
  const float* logits = call.logits[r] + begin;
  const sampling::Penalties penalties = row.penalties;
  const int* counts =
      penalties.any() && call.counts.data != nullptr ? call.counts[row.slot] + begin : nullptr;
  __syncthreads();  // the previous slice is no longer read
  for (int i = threadIdx.x; i < count; i += kSampleThreads)
    shared[i] = counts != nullptr ? sampling::penalised(logits[i], counts[i], penalties) : logits[i];
  __syncthreads();
  for (long long b = threadIdx.x; b < call.biases; b += kSampleThreads) {
    const long long at = call.bias_ids[row.slot][b] - begin;  // -1 (no token) is before every slice
    if (at >= 0 && at < count) shared[at] += call.bias[row.slot][b];
  }
  __syncthreads();
  if (call.allowed.data == nullptr) return count;
  for (int i = threadIdx.x; i < count; i += kSampleThreads)
    if (!allows(call, row, begin + i)) shared[i] = __uint_as_float(0xff800000u);
  __syncthreads();
  return count;
}

// The largest of the block's ranks, for every thread. `partial` has one entry per warp.
__device__ inline Sum block_largest(Sum best, Sum* partial) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const Sum other = __shfl_xor_sync(0xffffffffu, best, step);
    best = other > best ? other : best;
  }
  __syncthreads();
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = best;
  __syncthreads();
  for (int w = 0; w < kSampleThreads / kWarp; ++w) best = partial[w] > best ? partial[w] : best;
  return best;
}

// Counts the chosen token. Called once per row, by the last kernel that reads its logits.
__device__ inline void count_choice(const SampleCall& call, long long r) {
  const SampleRow& row = call.rows[r];
  if (row.slot < 0 || row.largest == 0 || !row.penalties.any() || call.counts.data == nullptr) return;
  call.counts[row.slot][*call.ids[r]] += 1;
}

}  // namespace sluice::backend::cuda::routing
