// The inputs of the decode kernel: which rows a block multiplies, and their columns in shared memory.
#pragma once

#include "backend/cuda/linear_decode.cuh"

namespace sluice::backend::cuda {

// The rows of the call that one matrix serves, a pass of them at a time.
class RowList {
 public:
  __device__ __forceinline__ RowList(const LinearCall& call, const DecodePlan& plan, std::byte* shared)
      : call_(call),
        plan_(plan),
        rows_(reinterpret_cast<int*>(shared + plan.rows)),
        marks_(reinterpret_cast<unsigned*>(shared + plan.marks)) {}

  // Without experts the block's place says it all.
  __device__ __forceinline__ int matrix() const {
    return static_cast<int>(blockIdx.y % static_cast<unsigned>(call_.slots));
  }
  // With experts: marks the rows of the block's matrix and returns it; -1 where another block serves it, or
  // no row asks for it. The whole block calls.
  __device__ __forceinline__ int find_matrix(Fault* fault) {
    const int count = static_cast<int>(call_.tokens * call_.slots);
    const int mine =
        plan_.by_matrix ? static_cast<int>(blockIdx.y) : static_cast<int>(call_.matrix_of(blockIdx.y, fault));
    bool earlier = false;
    bool any = false;
    for (int base = 0; base < count; base += kDecodeWarps * kWarp) {
      const int row = base + static_cast<int>(threadIdx.x);
      const bool same = row < count && mine >= 0 && call_.matrix_of(row, fault) == mine;
      const unsigned mark = __ballot_sync(0xffffffffu, same);
      if (threadIdx.x % kWarp == 0 && row < count) marks_[row / kWarp] = mark;
      any = any || same;
      earlier = earlier || (same && !plan_.by_matrix && row < static_cast<int>(blockIdx.y));
    }
    if (threadIdx.x == 0) rows_[kCursor] = 0;
    const bool taken = __syncthreads_or(earlier) != 0;
    return __syncthreads_or(any) != 0 && !taken ? mine : -1;
  }
  // Takes the next rows; 0 when there are none left. The whole block calls.
  __device__ __forceinline__ int next() {
    if (call_.experts == nullptr) return next_in_order();
    __syncthreads();
    if (threadIdx.x == 0) {
      const int words = (static_cast<int>(call_.tokens * call_.slots) + kWarp - 1) / kWarp;
      int found = 0;
      int word = rows_[kCursor];
      while (word < words && found < plan_.tokens) {
        const unsigned mark = marks_[word];
        if (mark == 0) {
          ++word;
          continue;
        }
        rows_[found++] = word * kWarp + __ffs(static_cast<int>(mark)) - 1;
        marks_[word] = mark & (mark - 1);
      }
      rows_[kCursor] = word;
      rows_[kCount] = found;
    }
    __syncthreads();
    return rows_[kCount];
  }
  __device__ __forceinline__ int operator[](int i) const { return rows_[i]; }

  static constexpr int kMost = 32;
  static constexpr int kCursor = kMost;
  static constexpr int kCount = kMost + 1;
  static constexpr int kBytes = (kMost + 2) * 4;

 private:
  __device__ __forceinline__ int next_in_order() {
    if (taken_) return 0;
    taken_ = true;
    const auto slots = static_cast<unsigned>(call_.slots);
    const int first = static_cast<int>(blockIdx.y / slots) * plan_.tokens;
    const int count = min(plan_.tokens, static_cast<int>(call_.tokens) - first);
    if (static_cast<int>(threadIdx.x) < count)
      rows_[threadIdx.x] = (first + static_cast<int>(threadIdx.x)) * static_cast<int>(slots) +
                           static_cast<int>(blockIdx.y % slots);
    __syncthreads();
    return count;
  }

  const LinearCall& call_;
  const DecodePlan& plan_;
  int* rows_;
  unsigned* marks_;
  bool taken_ = false;
};

// Eight inputs from `column` on; 0 beyond the row.
__device__ __forceinline__ void load_eight(const LinearCall& call, long long row, int column, float (&x)[8]) {
  const long long at = call.x_offset(row) + column;
  const int left = static_cast<int>(call.inputs) - column;
  if (call.type == ops::DType::f32) {
    const float* from = static_cast<const float*>(call.x) + at;
    if (left >= 8 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
      const float4 low = reinterpret_cast<const float4*>(from)[0];
      const float4 high = reinterpret_cast<const float4*>(from)[1];
      x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
      x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
      return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = i < left ? from[i] : 0.0f;
    return;
  }
  const Bf16* from = static_cast<const Bf16*>(call.x) + at;
  if (left >= 8 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
    const uint4 all = *reinterpret_cast<const uint4*>(from);
    const unsigned words[4] = {all.x, all.y, all.z, all.w};
#pragma unroll
    for (int i = 0; i < 8; ++i)
      x[i] = __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = i < left ? to_float(from[i]) : 0.0f;
}

// Splits the next BF16 number off each of the eight: the upper half as it is, what is left in place. Three of
// them hold a float exactly. Infinities and NaN go with the first.
__device__ __forceinline__ uint4 split_off(float (&x)[8]) {
  float upper[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const bool finite = fabsf(x[i]) <= 3.402823466e38f;
    upper[i] = finite ? truncated(x[i]) : x[i] != x[i] ? __uint_as_float(0x7fc00000u) : x[i];
    x[i] = finite ? x[i] - upper[i] : 0.0f;
  }
  return make_uint4(upper_halves(upper[0], upper[1]), upper_halves(upper[2], upper[3]),
                    upper_halves(upper[4], upper[5]), upper_halves(upper[6], upper[7]));
}

// Lays out the inputs of `count` rows: column token * terms + term, and in it the eights in the order in
// which the four lanes of a row read them side by side. Sums of groups go to the first term.
template <Storage S>
__device__ __forceinline__ void stage_inputs(const LinearCall& call, const DecodePlan& plan,
                                             const RowList& rows, int count, std::byte* shared) {
  using Shape = Fragment<S>;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int eights = plan.strides * (Shape::kStrideValues / 8);
  const int eights_of_group = call.w[0].group_size / 8;
  auto* sums = reinterpret_cast<float*>(shared + plan.sums);
  if (threadIdx.x < 16) reinterpret_cast<uint4*>(shared + plan.zeros)[threadIdx.x] = make_uint4(0, 0, 0, 0);
  for (int base = static_cast<int>(threadIdx.x) - lane; base < count * eights; base += kDecodeWarps * kWarp) {
    const int token = min((base + lane) / eights, count - 1);
    const int eighth = base + lane - token * eights;
    float x[8] = {};
    if (eighth < eights) load_eight(call, rows[token], 8 * eighth, x);
    if constexpr (Shape::kAffine) {
      float sum = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
      for (int step = 1; step < eights_of_group; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      if (eighth < eights && eighth % eights_of_group == 0)
        for (int term = 0; term < plan.terms; ++term)
          sums[(token * plan.terms + term) * plan.groups + eighth / eights_of_group] = term == 0 ? sum : 0.0f;
    }
    if (eighth >= eights) continue;
    const int step = eighth / (4 * Shape::kEights);
    const int within = eighth % (4 * Shape::kEights);
    const int place = step * 4 * Shape::kEights + within % Shape::kEights * 4 + within / Shape::kEights;
    for (int term = 0; term < plan.terms; ++term) {
      std::byte* column = shared + (token * plan.terms + term) * plan.input_pitch;
      reinterpret_cast<uint4*>(column)[place] = in_pair_order<Shape::kOrder>(split_off(x));
    }
  }
}

}  // namespace sluice::backend::cuda
