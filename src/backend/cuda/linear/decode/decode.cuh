// The decode kernel of the products: weight-stationary, on tensor cores.
//
//   out[t,n] = sum over groups g of scale[n,g] * (codes[n,g] . x[t,g]) + bias[n,g] * sum(x[t,g])
//
// A warp multiplies 16 rows of weights by 8 columns of inputs. Weights are prefetched into a ring buffer in
// shared memory, where each lane has its own part; the first steps are loaded before the inputs are
// available. Codes are converted to BF16 exactly, a group's sum stays in the tensor core's F32 accumulator,
// and only that sum is scaled. F32 inputs are split into three BF16 columns, so they are not rounded either.
// Scales are copied with the first step of their rows. The kernel is deliberately short: in a decode step,
// fetching its instructions takes most of the time of a small product.
//
// Steps of K are distributed over the `parts` warps of a tile, whose sums are added in shared memory in a
// fixed order. A column does not depend on the others, so a token's bits do not depend on the batch. Bytes:
// the weights once per pass of up to 32 tokens; an expert's once per pass of the tokens that chose it.
#pragma once

#include "backend/cuda/device/async_copy.cuh"
#include "backend/cuda/device/element.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/linear/decode/plan.h"
#include "backend/cuda/linear/decode/weight_fragment.cuh"
#include "backend/cuda/linear/weight_value.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

// Copies `Bytes` (4, 8 or 16) asynchronously; writes zeros if not valid.
template <int Bytes>
__device__ __forceinline__ void copy_beside(unsigned to, const std::byte* from, bool valid) {
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(valid ? 16 : 0)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Bytes),
                 "r"(valid ? Bytes : 0)
                 : "memory");
}

template <int Words>
__device__ __forceinline__ void load_shared(unsigned address, unsigned* words) {
  if constexpr (Words == 4)
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address));
  else if constexpr (Words == 2)
    asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "r"(address));
  else
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(words[0]) : "r"(address));
}

// The weights of a warp, two rows of a 16-row tile per lane, and the thread's share of copying a round's
// scales.
template <Storage S, int Blocks>
class WeightStream {
 public:
  using Shape = Fragment<S>;
  static constexpr int kDepth = Shape::kShape.depth(Blocks);
  static constexpr int kWords = Shape::kWords;
  static constexpr int kVector = Shape::kShape.vector_words;
  static constexpr int kKinds = Shape::kShape.kinds;

  __device__ __forceinline__ WeightStream(const LinearCall& call, const DecodePlan& plan, std::byte* shared)
      : call_(call), plan_(plan), shared_(shared) {
    const int warp = to_int(threadIdx.x) / kWarp;
    part_ = warp & (plan.parts() - 1);
    row_ = (warp >> plan.parts_log2 & ((1 << plan.tiles_log2) - 1)) * kTileRows + lane() / 4;
    operand_ = warp >> (plan.parts_log2 + plan.tiles_log2);
    ring_ = to_unsigned(__cvta_generic_to_shared(shared)) +
            to_unsigned(plan.ring + warp * kDepth * kSlotBytes + lane() * 4 * kVector);
  }
  __device__ __forceinline__ int part() const { return part_; }
  __device__ __forceinline__ int row() const { return row_; }  // in the block, the lane's first
  __device__ __forceinline__ int operand() const { return operand_; }

  __device__ __forceinline__ void begin(int matrix) {
    values_ = call_.w[operand_][matrix].values + part_ * kStepBytes + lane() % 4 * (kStepBytes / 4);
    if constexpr (kKinds > 0) {
      const int field = to_int(threadIdx.x) >> (threads_log2() + plan_.tiles_log2 + 4);
      const MatrixPointers at = call_.w[field / kKinds][matrix];
      scales_ = field % kKinds == 0 ? at.scales : at.biases;
    }
    round_ = to_int(blockIdx.x) - to_int(gridDim.x);
    step_ = plan_.steps;
#pragma unroll 1
    for (int i = 0; i < kDepth; ++i) load();
  }
  // Waits until the next step to take, and the thread's part of its scales, have arrived.
  __device__ __forceinline__ void wait() const {
    wait_for_copies<kDepth - 1>();
  }
  // Takes that step's weights and starts to load a later step into their place.
  __device__ __forceinline__ void take(unsigned (&words)[2][kWords]) {
    wait();
    const unsigned from = ring_ + to_unsigned(slot_ * kSlotBytes);
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int v = 0; v < kWords; v += kVector) load_shared<kVector>(from + place(r, v), &words[r][v]);
    load();
  }

 private:
  static constexpr int kSlotBytes = 2 * kWords * 4 * kWarp;
  static constexpr unsigned place(int r, int v) {
    return to_unsigned((r * kWords + v) * 4 * kWarp);
  }
  __device__ static __forceinline__ int lane() {
    return to_int(threadIdx.x) % kWarp;
  }

  __device__ __forceinline__ void load() {
    if (step_ >= plan_.steps) begin_round(round_ + to_int(gridDim.x));
    if (round_ < plan_.rounds) {
      const unsigned to = ring_ + to_unsigned(slot_ * kSlotBytes);
      const int left = to_int(call_.inputs) - step_ * Shape::kStepValues - lane() % 4 * Shape::kLaneValues;
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int v = 0; v < kWords; v += kVector)
          copy_beside<4 * kVector>(to + place(r, v), from_[r] + 4 * v, v * 32 / Shape::kBits < left);
      step_ += plan_.parts();
      from_[0] += kStepBytes << plan_.parts_log2;
      from_[1] += kStepBytes << plan_.parts_log2;
    }
    close_copies();
    slot_ = slot_ + 1 == kDepth ? 0 : slot_ + 1;
  }
  __device__ __forceinline__ void begin_round(int round) {
    round_ = round;
    step_ = part_;
    if (round_ >= plan_.rounds) return;
    const int first = round_ * plan_.rows_of_block();
    const int last = to_int(call_.outputs) - 1;
    const auto row_bytes = to_unsigned(call_.w[0].row_bytes);
#pragma unroll
    for (int r = 0; r < 2; ++r)
      from_[r] = values_ + static_cast<std::uint64_t>(min(first + row_ + 8 * r, last)) * row_bytes;
    if constexpr (kKinds > 0) copy_scales(first, last);
  }
  // Several threads copy a row: there are at least as many threads as rows of all kinds of scales. Padding is
  // zero.
  __device__ __forceinline__ int threads_log2() const {
    return plan_.parts_log2 + (kKinds == 1 ? 1 : 0);
  }
  __device__ __forceinline__ void copy_scales(int first, int last) {
    const int index = to_int(threadIdx.x) >> threads_log2();
    const int row = min(first + (index & (plan_.rows_of_block() - 1)), last);
    const auto row_bytes = to_unsigned(call_.w[0].scale_row_bytes);
    const std::byte* from = scales_ + static_cast<std::uint64_t>(row) * row_bytes;
    const int rows = call_.operands * kKinds * plan_.rows_of_block();
    std::byte* to = shared_ + plan_.scales + (buffer_ * rows + index) * plan_.scale_pitch;
    const auto address = to_unsigned(__cvta_generic_to_shared(to));
    const auto granule = to_unsigned(plan_.scale_granule);
    const unsigned end = plan_.scale_granules * granule;
#pragma unroll 1
    for (unsigned at = (threadIdx.x & ((1u << threads_log2()) - 1)) * granule; at < end;
         at += granule << threads_log2()) {
      if (granule == 16)
        copy_beside<16>(address + at, from + at, at < row_bytes);
      else if (granule == 4)
        copy_beside<4>(address + at, from + at, at < row_bytes);
      else
        for (unsigned b = at; b < at + granule; ++b) to[b] = b < row_bytes ? from[b] : std::byte{0};
    }
    buffer_ = buffer_ + 1 == plan_.scale_buffers ? 0 : buffer_ + 1;
  }
  static constexpr int kStepBytes = Shape::kStepValues * Shape::kBits / 8;  // per row

  const LinearCall& call_;
  const DecodePlan& plan_;
  std::byte* shared_;
  unsigned ring_;
  const std::byte* from_[2];
  int part_, row_, operand_;
  const std::byte* values_ = nullptr;  // the lane's, in the matrix's first row
  const std::byte* scales_ = nullptr;  // or biases, whichever the thread copies
  int round_ = 0;
  int step_ = 0;
  int slot_ = 0;    // the next to take, which the next load fills again
  int buffer_ = 0;  // of scales: the next to fill
};

// The scales of groups `first` and `second`, which a lane's two columns need: either neighbours, of which the
// first is even, or the same group. `at` is the row's first scale in shared memory.
template <Storage S, bool Bf16Scales>
__device__ __forceinline__ float2 scale_pair(ScaleType type, const std::byte* at, int first, int second) {
  if constexpr (Bf16Scales) {
    // Both are in one word; shifted up, each half is a float.
    const unsigned both = *reinterpret_cast<const unsigned*>(at + 4 * (first >> 1));
    return make_float2(__uint_as_float(__byte_perm(both, 0, first & 1 ? 0x3244 : 0x1044)),
                       __uint_as_float(__byte_perm(both, 0, second & 1 ? 0x3244 : 0x1044)));
  } else if constexpr (S == Storage::fp8) {
    return make_float2(e8m0_to_float(static_cast<unsigned>(at[first])),
                       e8m0_to_float(static_cast<unsigned>(at[second])));
  } else if constexpr (S == Storage::fp4) {
    const auto low = static_cast<unsigned>(at[first]);
    const auto high = static_cast<unsigned>(at[second]);
    return type == ScaleType::e4m3 ? make_float2(e4m3_to_float(low), e4m3_to_float(high))
                                   : make_float2(e8m0_to_float(low), e8m0_to_float(high));
  } else {
    if (type == ScaleType::f32)
      return make_float2(reinterpret_cast<const float*>(at)[first],
                         reinterpret_cast<const float*>(at)[second]);
    const auto* halves = reinterpret_cast<const unsigned short*>(at);
    return make_float2(__half2float(__ushort_as_half(halves[first])),
                       __half2float(__ushort_as_half(halves[second])));
  }
}

// A lane's columns of inputs, and the groups of its two results.
template <Storage S, int Blocks>
struct Columns {
  unsigned inputs;  // shared address of this lane's column of the first tile
  unsigned zeros;
  int tile_pitch;  // bytes between the columns of neighbouring tiles
  unsigned live;   // bit b: this lane's column of tile b holds inputs
  int tiles;       // in use
  int groups_of_step;
  int group[Fragment<S>::kFlushes][2];  // within a step, of the lane's two results
  int result[2];                        // columns of the lane's two results in the first tile
  int columns_of_tile;
  int last;

  __device__ __forceinline__ Columns(const DecodePlan& plan, const std::byte* shared, int columns)
      : last(columns - 1) {
    const int lane = to_int(threadIdx.x) % kWarp;
    const int quarter = lane % 4;
    const int mine = lane / 4;
    const int ways = 1 << plan.ways_log2;
    const int column = mine >> plan.ways_log2;
    const auto base = to_unsigned(__cvta_generic_to_shared(shared));
    inputs = base + to_unsigned(column * plan.input_pitch + quarter * 16);
    zeros = base + to_unsigned(plan.zeros + quarter * 16);
    columns_of_tile = kTileColumns >> plan.ways_log2;
    tiles = (columns + columns_of_tile - 1) >> (3 - plan.ways_log2);
    tile_pitch = columns_of_tile * plan.input_pitch;
    live = 0;
#pragma unroll
    for (int b = 0; b < Blocks; ++b)
      if ((mine & (ways - 1)) == quarter * ways / 4 && b * columns_of_tile + column < columns)
        live |= 1u << b;
    groups_of_step = Fragment<S>::kStepValues >> plan.group_log2;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int way = (2 * quarter + i) & (ways - 1);
      result[i] = (2 * quarter + i) >> plan.ways_log2;
#pragma unroll
      for (int f = 0; f < Fragment<S>::kFlushes; ++f)
        group[f][i] = (way * (Fragment<S>::kStepValues >> plan.ways_log2) +
                       f * (Fragment<S>::kLaneValues / Fragment<S>::kFlushes)) >>
                      plan.group_log2;
    }
  }
  // Index of the sums of inputs. A column past the last is not used, so it may read any.
  __device__ __forceinline__ int sum_column(int tile, int i) const {
    return min(result[i] + tile * columns_of_tile, last);
  }
};

// A lane's weights of one step: 16 rows by 4 * kLaneValues of K. `scales`: where the scales of its first row
// begin in shared memory; those of its other row are 8 * `plan.scale_pitch` further, biases `biases` bytes
// after their scales.
template <Storage S>
struct StepWeights {
  int step;
  int scales;
  int biases;
  const unsigned (&words)[2][Fragment<S>::kWords];
};

// total += the inputs of one step times its weights.
template <Storage S, bool Bf16Scales, int Blocks>
__device__ __forceinline__ void multiply_step(const LinearCall& call, const DecodePlan& plan,
                                              const Columns<S, Blocks>& columns, const std::byte* shared,
                                              const StepWeights<S>& weights, float (&total)[Blocks][4]) {
  using Shape = Fragment<S>;
  const auto& [step, scales, biases, words] = weights;
  constexpr int kEights = Shape::kEights / Shape::kFlushes;
  unsigned inputs[Blocks];
#pragma unroll
  for (int b = 0; b < Blocks; ++b)
    inputs[b] = columns.live >> b & 1u
                    ? columns.inputs + to_unsigned(b * columns.tile_pitch + step * Shape::kEights * 64)
                    : columns.zeros;
#pragma unroll
  for (int f = 0; f < Shape::kFlushes; ++f) {
    // Two independent sums, because each tensor core product waits for the previous one on its accumulator.
    float part[Blocks][4] = {};
    float other[Blocks][4] = {};
#pragma unroll
    for (int i = f * kEights; i < (f + 1) * kEights; ++i) {
      unsigned low[Shape::kTerms][4];
      unsigned high[Shape::kTerms][4];
      unpack_eight<S>(words[0], i, low);
      unpack_eight<S>(words[1], i, high);
#pragma unroll
      for (int b = 0; b < Blocks; ++b) {
        if (b > 0 && b >= columns.tiles) break;
        unsigned x[4];
        load_shared<4>(inputs[b] + 64u * i, x);
#pragma unroll
        for (int term = 0; term < Shape::kTerms; ++term) {
          multiply_tile(part[b], {low[term][0], high[term][0], low[term][1], high[term][1]}, x[0], x[1]);
          multiply_tile(other[b], {low[term][2], high[term][2], low[term][3], high[term][3]}, x[2], x[3]);
        }
      }
    }
#pragma unroll
    for (int b = 0; b < Blocks; ++b)
#pragma unroll
      for (int i = 0; i < 4; ++i) part[b][i] += other[b][i];
    const int first = step * columns.groups_of_step + columns.group[f][0];
    const int second = step * columns.groups_of_step + columns.group[f][1];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float2 scale = make_float2(1, 1);
      float2 bias = make_float2(0, 0);
      const std::byte* at = shared + scales + r * 8 * plan.scale_pitch;
      if constexpr (!Shape::kDense)
        scale = scale_pair<S, Bf16Scales>(call.w[0].scale_type, at, first, second);
      if constexpr (Shape::kAffine)
        bias = scale_pair<S, Bf16Scales>(call.w[0].scale_type, at + biases, first, second);
#pragma unroll
      for (int b = 0; b < Blocks; ++b) {
        if (b > 0 && b >= columns.tiles) break;
        total[b][2 * r] = fmaf(scale.x, part[b][2 * r], total[b][2 * r]);
        total[b][2 * r + 1] = fmaf(scale.y, part[b][2 * r + 1], total[b][2 * r + 1]);
        if constexpr (Shape::kAffine) {
          const auto* sums = reinterpret_cast<const float*>(shared + plan.sums);
          const float left = sums[columns.sum_column(b, 0) * plan.groups + first];
          const float right = sums[columns.sum_column(b, 1) * plan.groups + second];
          total[b][2 * r] = fmaf(bias.x, left, total[b][2 * r]);
          total[b][2 * r + 1] = fmaf(bias.y, right, total[b][2 * r + 1]);
        }
      }
    }
  }
}

}  // namespace sluice::backend::cuda::linear::decode
