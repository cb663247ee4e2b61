// The decode kernel of the products: a weight-stationary product on tensor cores.
//
//   out[t,n] = sum over groups g of scale[n,g] * (codes[n,g] . x[t,g]) + bias[n,g] * sum(x[t,g])
//
// A warp multiplies 16 rows of weights by 8 columns of inputs. Weights travel from memory to registers in
// loads of up to 16 bytes a lane, a whole stride (4 KB a warp) ahead of their use, the first one before the
// inputs are there; codes become BF16 exactly, a group's sum stays in the tensor core's F32 accumulator, and
// only that is scaled. F32 inputs are three BF16 columns, so that nothing is rounded either. Scales come
// through shared memory: those of 16 rows lie behind one another.
//
// K is cut into strides, dealt out to the `parts` warps of a tile; their sums meet in shared memory in a
// fixed order. A column does not depend on the others, hence a token's bits not on the batch. Bytes: the
// weights once a pass of up to 32 tokens; an expert's once a pass of the tokens that chose it.
#pragma once

#include "backend/cuda/decode_plan.h"
#include "backend/cuda/element.cuh"
#include "backend/cuda/launch.h"
#include "backend/cuda/warp.cuh"
#include "backend/cuda/weight_fragment.cuh"
#include "backend/cuda/weight_value.cuh"

namespace sluice::backend::cuda {

// Zero where not valid: no branch around a load in flight.
template <int Words>
__device__ __forceinline__ void load_words(const std::byte* from, bool valid, unsigned* words) {
  if constexpr (Words == 4) {
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %5, 0;\n\t"
        "mov.b32 %0, 0;\n\tmov.b32 %1, 0;\n\tmov.b32 %2, 0;\n\tmov.b32 %3, 0;\n\t"
        "@p ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];\n\t}"
        : "=&r"(words[0]), "=&r"(words[1]), "=&r"(words[2]), "=&r"(words[3])
        : "l"(from), "r"(static_cast<int>(valid)));
  } else if constexpr (Words == 2) {
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %3, 0;\n\tmov.b32 %0, 0;\n\tmov.b32 %1, 0;\n\t"
        "@p ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%0,%1}, [%2];\n\t}"
        : "=&r"(words[0]), "=&r"(words[1])
        : "l"(from), "r"(static_cast<int>(valid)));
  } else {
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %2, 0;\n\tmov.b32 %0, 0;\n\t"
        "@p ld.global.nc.L2::128B.u32 %0, [%1];\n\t}"
        : "=&r"(words[0])
        : "l"(from), "r"(static_cast<int>(valid)));
  }
}

// The weights of a warp: two rows of a 16-row tile a lane, one stride in registers. Where a step is used up,
// the same registers take that step of the next stride.
template <Storage S>
class WeightStream {
 public:
  using Shape = Fragment<S>;
  static constexpr int kVector = Shape::kShape.vector_words;

  __device__ __forceinline__ WeightStream(const LinearCall& call, const DecodePlan& plan, int operand,
                                          int tile, int part)
      : call_(call), plan_(plan), operand_(operand), tile_(tile), part_(part) {}

  __device__ __forceinline__ void begin(const std::byte* values) {
    values_ = values;
    round_ = static_cast<int>(blockIdx.x);
    stride_ = part_;
    seek();
#pragma unroll
    for (int step = 0; step < Shape::kSteps; ++step) load(step);
    advance();
  }
  __device__ __forceinline__ void load(int step) {
#pragma unroll
    for (int v = 0; v < Shape::kWords; v += kVector) {
      const int offset = step * Shape::kWords * 16 + 4 * v;
      const int value = step * Shape::kStepValues + v * 32 / Shape::kBits;
#pragma unroll
      for (int r = 0; r < 2; ++r) load_words<kVector>(from_[r] + offset, value < left_, &words[step][r][v]);
    }
  }
  // To the stride after the one that was loaded last.
  __device__ __forceinline__ void advance() {
    stride_ += plan_.parts;
    if (stride_ >= plan_.strides) {
      stride_ = part_;
      round_ += static_cast<int>(gridDim.x);
    }
    seek();
  }

  unsigned words[Shape::kSteps][2][Shape::kWords];

 private:
  __device__ __forceinline__ void seek() {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const long long first = (static_cast<long long>(round_) * plan_.tiles + tile_) * kTileRows + lane / 4;
    const long long column =
        static_cast<long long>(stride_) * Shape::kStrideValues + lane % 4 * Shape::kLaneValues;
    left_ = round_ < plan_.rounds ? static_cast<int>(call_.inputs - column) : 0;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const long long row = min(first + 8 * r, call_.outputs - 1);
      from_[r] = values_ + row * call_.w[operand_].row_bytes + column * Shape::kBits / 8;
    }
  }

  const LinearCall& call_;
  const DecodePlan& plan_;
  int operand_, tile_, part_;
  const std::byte* values_ = nullptr;
  const std::byte* from_[2];
  int round_ = 0;
  int stride_ = 0;
  int left_ = 0;  // values of the row from this lane's first on; none after the last round
};

// Copies the scales and biases of a round's rows into one of two buffers.
template <Storage S>
__device__ __forceinline__ void copy_scales(const LinearCall& call, const DecodePlan& plan, int matrix,
                                            int round, std::byte* to) {
  constexpr int kKinds = Fragment<S>::kShape.kinds;
  const int rows_of_block = plan.tiles * kTileRows;
  const long long first = static_cast<long long>(round) * rows_of_block;
  if (first >= call.outputs) return;
  const int rows = static_cast<int>(min(static_cast<long long>(rows_of_block), call.outputs - first));
  const int row_bytes = static_cast<int>(call.w[0].scale_row_bytes);
  const int granule = plan.scale_granule;
  const int granules = row_bytes / granule;
#pragma unroll
  for (int field = 0; field < 2 * kKinds; ++field) {
    if (field >= call.operands * kKinds) break;
    const MatrixPointers at = call.w[field / kKinds][matrix];
    const std::byte* from = (field % kKinds == 0 ? at.scales : at.biases) + first * row_bytes;
    std::byte* field_to = to + field * rows_of_block * plan.scale_pitch;
    for (int i = static_cast<int>(threadIdx.x); i < rows * granules; i += kDecodeWarps * kWarp) {
      const std::byte* source = from + i * granule;
      std::byte* target = field_to + i / granules * plan.scale_pitch + i % granules * granule;
      const auto address = static_cast<unsigned>(__cvta_generic_to_shared(target));
      if (granule == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(source) : "memory");
      else if (granule == 4)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(source) : "memory");
      else
        for (int b = 0; b < granule; ++b) target[b] = source[b];
    }
  }
}

__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// Behind a row's last scale, where its padding reads: zeros.
__device__ __forceinline__ void clear_padding(const LinearCall& call, const DecodePlan& plan,
                                              std::byte* scales, int rows) {
  for (int row = static_cast<int>(threadIdx.x); row < rows; row += kDecodeWarps * kWarp)
    for (int b = static_cast<int>(call.w[0].scale_row_bytes); b < plan.scale_pitch; ++b)
      scales[row * plan.scale_pitch + b] = std::byte{0};
}

// The scales of groups `first` and `second`, which a lane's two columns need: neighbours, the first of them
// even, or one and the same. `at` is the row's first scale in shared memory.
template <Storage S, bool Bf16Scales>
__device__ __forceinline__ float2 scale_pair(ScaleType type, const std::byte* at, int first, int second) {
  if constexpr (Bf16Scales) {
    // Both lie in one word; a half of it moved up is a float.
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

// What a lane needs to know to multiply: its columns of inputs, and the groups of its two results.
template <Storage S>
struct Columns {
  unsigned inputs;  // shared address of this lane's column of the first tile
  unsigned zeros;
  int tile_pitch;  // bytes from a tile's columns to the next tile's
  unsigned live;   // bit b: this lane's column of tile b holds inputs
  int tiles;       // in use
  int groups_of_step;
  int group[Fragment<S>::kFlushes][2];  // within a step, of the lane's two results
  int result[2];                        // columns of the lane's two results in the first tile
  int columns_of_tile;
  int last;

  __device__ __forceinline__ Columns(const LinearCall& call, const DecodePlan& plan, const std::byte* shared,
                                     int columns)
      : last(columns - 1) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int quarter = lane % 4;
    const int mine = lane / 4;
    const int ways = 1 << plan.ways_log2;
    const int column = mine >> plan.ways_log2;
    const auto base = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    inputs = base + static_cast<unsigned>(column * plan.input_pitch + quarter * 16);
    zeros = base + static_cast<unsigned>(plan.zeros + quarter * 16);
    columns_of_tile = kTileColumns >> plan.ways_log2;
    tiles = (columns + columns_of_tile - 1) >> (3 - plan.ways_log2);
    tile_pitch = columns_of_tile * plan.input_pitch;
    live = 0;
    for (int b = 0; b < plan.blocks; ++b)
      if ((mine & (ways - 1)) == quarter * ways / 4 && b * columns_of_tile + column < columns)
        live |= 1u << b;
    groups_of_step = Fragment<S>::kStepValues / call.w[0].group_size;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int way = (2 * quarter + i) & (ways - 1);
      result[i] = (2 * quarter + i) >> plan.ways_log2;
#pragma unroll
      for (int f = 0; f < Fragment<S>::kFlushes; ++f)
        group[f][i] = (way * (Fragment<S>::kStepValues >> plan.ways_log2) +
                       f * (Fragment<S>::kLaneValues / Fragment<S>::kFlushes)) /
                      call.w[0].group_size;
    }
  }
  // Of the sums of inputs; a column beyond the last is nobody's and may take any.
  __device__ __forceinline__ int sum_column(int tile, int i) const {
    return min(result[i] + tile * columns_of_tile, last);
  }
};

__device__ __forceinline__ uint4 load_shared(unsigned address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address));
  return v;
}

// The inputs of one step times its weights: 16 rows by 4 * kLaneValues of K. `scales`: where the scales of
// the lane's first row begin in shared memory; those of its other row lie `plan.scale_pitch` * 8 behind,
// biases `biases` bytes behind their scales.
template <Storage S, bool Bf16Scales, int Blocks>
__device__ __forceinline__ void multiply_step(const LinearCall& call, const DecodePlan& plan,
                                              const Columns<S>& columns, const std::byte* shared, int scales,
                                              int biases, int step,
                                              const unsigned (&words)[2][Fragment<S>::kWords],
                                              float (&total)[Blocks][4]) {
  using Shape = Fragment<S>;
  constexpr int kEights = Shape::kEights / Shape::kFlushes;
  unsigned inputs[Blocks];
#pragma unroll
  for (int b = 0; b < Blocks; ++b)
    inputs[b] =
        columns.live >> b & 1u
            ? columns.inputs + static_cast<unsigned>(b * columns.tile_pitch + step * Shape::kEights * 64)
            : columns.zeros;
#pragma unroll
  for (int f = 0; f < Shape::kFlushes; ++f) {
    float part[Blocks][4] = {};
#pragma unroll
    for (int i = f * kEights; i < (f + 1) * kEights; ++i) {
      unsigned low[Shape::kTerms][4];
      unsigned high[Shape::kTerms][4];
      unpack_eight<S>(words[0], i, low);
      unpack_eight<S>(words[1], i, high);
#pragma unroll
      for (int b = 0; b < Blocks; ++b) {
        if (b > 0 && b >= columns.tiles) break;
        const uint4 x = load_shared(inputs[b] + 64u * i);
#pragma unroll
        for (int term = 0; term < Shape::kTerms; ++term) {
          multiply_tile(part[b], low[term][0], high[term][0], low[term][1], high[term][1], x.x, x.y);
          multiply_tile(part[b], low[term][2], high[term][2], low[term][3], high[term][3], x.z, x.w);
        }
      }
    }
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

}  // namespace sluice::backend::cuda
