// The kernel that decode.cuh describes, and its inputs as columns in shared memory.
#pragma once

#include "backend/cuda/linear/decode/decode.cuh"
#include "backend/cuda/linear/decode/normed_row.cuh"
#include "backend/cuda/linear/decode/row_list.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

// Eight inputs from `column` of the row at `offset` on; 0 past the row.
__device__ __forceinline__ void load_eight(const LinearCall& call, long long offset, int column,
                                           float (&x)[8]) {
  const long long at = offset + column;
  const int left = to_int(call.inputs) - column;
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
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = i < left ? to_float(from[i]) : 0.0f;
}

// Splits a BF16 number off each of the eight floats by truncation and leaves the remainder in place. Three
// such numbers represent a float exactly. Infinities and NaN are in the first.
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

// Stores the inputs of `count` rows: column token * terms + term, with groups of eight in the order in which
// the four lanes of a row read them together. Sums of groups are stored with the first term.
template <Storage S, int Blocks>
class InputStage {
 public:
  using Shape = Fragment<S>;

  __device__ __forceinline__ InputStage(const LinearCall& call, const DecodePlan& plan, const RowList& rows,
                                        int count, std::byte* shared)
      : call_(call),
        plan_(plan),
        rows_(rows),
        shared_(shared),
        eights_(plan.steps * (Shape::kStepValues / 8)),
        total_(count * eights_) {}

  // One token, normalised while it is loaded; rows consist of whole warps of chunks.
  __device__ __forceinline__ void fill(const NormedRow& row) const {
    clear_zeros();
    uint4 chunks[NormedRow::kHeld];
    row.load(chunks);
#pragma unroll
    for (int i = 0; i < NormedRow::kHeld; ++i)
      if (row.inside(i)) put(row.chunk(i), chunks[i]);
  }
  __device__ __forceinline__ void fill() const {
    clear_zeros();
    constexpr int kThreads = kDecodeWarps * kWarp;
    const int thread = threadIdx.x;
    if (!plan_.whole_inputs) {
      for (int i = thread; i - thread % kWarp < total_; i += kThreads) {
        const int token = token_of(i);
        float x[8] = {};
        if (i < total_) load_eight(call_, rows_[token].x, 8 * (i - token * eights_), x);
        write_sum(i, x);
        for (int term = 0; term < plan_.terms; ++term) write(i, term, split_off(x));
      }
      return;
    }
#pragma unroll 1
    for (int first = thread; first - thread % kWarp < total_; first += Blocks * kThreads) {
      uint4 eight[Blocks];  // this many loads in flight
#pragma unroll
      for (int j = 0; j < Blocks; ++j) {
        const int i = first + j * kThreads;
        eight[j] = make_uint4(0, 0, 0, 0);
        if (i < total_ && inside(i)) eight[j] = *source(i);
      }
#pragma unroll
      for (int j = 0; j < Blocks; ++j) put(first + j * kThreads, eight[j]);
    }
  }

 private:
  __device__ __forceinline__ void clear_zeros() const {
    if (threadIdx.x < 16)
      reinterpret_cast<uint4*>(shared_ + plan_.zeros)[threadIdx.x] = make_uint4(0, 0, 0, 0);
  }
  // Stores eight BF16 inputs unchanged. To be called by the whole warp.
  __device__ __forceinline__ void put(int i, const uint4& eight) const {
    const unsigned words[4] = {eight.x, eight.y, eight.z, eight.w};
    float x[8];
#pragma unroll
    for (int e = 0; e < 8; ++e)
      x[e] = __uint_as_float(e % 2 == 0 ? words[e / 2] << 16 : words[e / 2] & 0xffff0000u);
    write_sum(i, x);
    write(i, 0, eight);
  }
  __device__ __forceinline__ int token_of(int i) const {
    return static_cast<int>(__umulhi(to_unsigned(i), plan_.eights_reciprocal));
  }
  // To be called by the whole warp.
  __device__ __forceinline__ void write_sum(int i, const float (&x)[8]) const {
    if constexpr (Shape::kAffine) {
      const int eights_log2 = plan_.group_log2 - 3;  // of a group
      float sum = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
      for (int step = 1; step < 1 << eights_log2; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      const int token = token_of(i);
      const int eighth = i - token * eights_;
      if (i >= total_ || (eighth & ((1 << eights_log2) - 1)) != 0) return;
      auto* to = reinterpret_cast<float*>(shared_ + plan_.sums) + token * plan_.terms * plan_.groups +
                 (eighth >> eights_log2);
      for (int term = 0; term < plan_.terms; ++term) to[term * plan_.groups] = term == 0 ? sum : 0.0f;
    }
  }
  __device__ __forceinline__ void write(int i, int term, const uint4& eight) const {
    if (i >= total_) return;
    const int token = token_of(i);
    const int eighth = i - token * eights_;
    const int within = eighth % (4 * Shape::kEights);
    const int place = eighth - within + within % Shape::kEights * 4 + within / Shape::kEights;
    std::byte* column = shared_ + (token * plan_.terms + term) * plan_.input_pitch;
    reinterpret_cast<uint4*>(column)[place] = in_pair_order<Shape::kOrder>(eight);
  }
  // For whole_inputs: whether item i is in the row.
  __device__ __forceinline__ bool inside(int i) const {
    return 8 * (i - token_of(i) * eights_) < to_int(call_.inputs);
  }
  __device__ __forceinline__ const uint4* source(int i) const {
    const int token = token_of(i);
    return reinterpret_cast<const uint4*>(static_cast<const Bf16*>(call_.x) + rows_[token].x +
                                          8 * (i - token * eights_));
  }

  const LinearCall& call_;
  const DecodePlan& plan_;
  const RowList& rows_;
  std::byte* shared_;
  int eights_;  // of a row, including padding
  int total_;
};

// Adds up the partial results of each tile's warps in a fixed order, and writes the rows of a round.
__device__ __forceinline__ void write_round(const LinearCall& call, const DecodePlan& plan,
                                            const RowList& rows, int count, int round,
                                            const float* partials) {
  const int rows_log2 = plan.tiles_log2 + 4;
#pragma unroll 1
  for (int i = threadIdx.x; i < count << rows_log2; i += kDecodeWarps * kWarp) {
    const int row = i & (plan.rows_of_block() - 1);
    const int token = i >> rows_log2;
    const int n = (round << rows_log2) + row;
    if (n >= call.outputs) continue;
    const auto sum = [&](int operand) {
      const int warp = ((operand << plan.tiles_log2) + row / kTileRows) << plan.parts_log2;
      const float* from =
          partials + warp * plan.partial_pitch + token * plan.terms * kTileRows + row % kTileRows;
      float value = 0;
      for (int term = 0; term < plan.terms; ++term)
#pragma unroll
        for (int part = 0; part < kDecodeWarps; ++part)
          if (part < plan.parts()) value += from[part * plan.partial_pitch + term * kTileRows];
      return value;
    };
    float result = sum(0);
    if (call.operands == 2) result = result / (1.0f + expf(-result)) * sum(1);
    call.store(rows[token].out + n, result);
  }
}

// Stores a warp's results in shared memory: [column of inputs][row], with the ways of a column added up.
template <int Blocks>
__device__ __forceinline__ void leave_partials(const DecodePlan& plan, const float (&total)[Blocks][4],
                                               float* to) {
  const int lane = to_int(threadIdx.x) % kWarp;
  const int row = lane / 4;
#pragma unroll
  for (int b = 0; b < Blocks; ++b)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float* at = to + (b << (3 - plan.ways_log2)) * kTileRows + row + 8 * r;
      const float left = total[b][2 * r];
      const float right = total[b][2 * r + 1];
      if (plan.ways_log2 == 0) {
        at[lane % 4 * 2 * kTileRows] = left;
        at[(lane % 4 * 2 + 1) * kTileRows] = right;
      } else {
        float both = left + right;
        if (plan.ways_log2 == 2) both += __shfl_xor_sync(0xffffffffu, both, 1);
        at[(lane % 4 >> (plan.ways_log2 - 1)) * kTileRows] = both;
      }
    }
}

template <Storage S, bool Bf16Scales, int Blocks>
__global__ void __launch_bounds__(kDecodeWarps* kWarp, blocks_per_multiprocessor(Blocks))
    linear_decode(const __grid_constant__ LinearCall call, const __grid_constant__ DecodePlan plan,
                  Fault* fault) {
  using Shape = Fragment<S>;
  extern __shared__ __align__(16) std::byte shared[];
  const int warp = to_int(threadIdx.x) / kWarp;
  auto* partials = reinterpret_cast<float*>(shared + plan.partials);

  RowList rows(call, plan, shared);
  WeightStream<S, Blocks> stream(call, plan, shared);
  int matrix = rows.slot();
  if (call.experts == nullptr) stream.begin(matrix);
  wait_for_inputs();
  allow_successor();
  if (call.experts != nullptr) {
    matrix = rows.find_matrix(fault);
    if (matrix < 0) return;
    stream.begin(matrix);
  }
  const int biases = plan.rows_of_block() * plan.scale_pitch;  // after their scales
  const int scale_bytes = call.operands * Shape::kShape.kinds * biases;
  int buffer = 0;
  for (bool first = true;; first = false) {
    if (!first) __syncthreads();
    const int count = rows.next();
    if (count == 0) return;
    if (!first) stream.begin(matrix);
    InputStage<S, Blocks>(call, plan, rows, count, shared).fill();
    const Columns<S, Blocks> columns(plan, shared, count * plan.terms);
#pragma unroll 1
    for (int round = blockIdx.x; round < plan.rounds; round += to_int(gridDim.x)) {
      stream.wait();
      __syncthreads();
      const int scales = plan.scales + buffer * scale_bytes +
                         stream.operand() * Shape::kShape.kinds * biases + stream.row() * plan.scale_pitch;
      buffer = buffer + 1 == plan.scale_buffers ? 0 : buffer + 1;
      float total[Blocks][4] = {};
#pragma unroll 1
      for (int step = stream.part(); step < plan.steps; step += plan.parts()) {
        unsigned words[2][Shape::kWords];
        stream.take(words);
        multiply_step<S, Bf16Scales, Blocks>(call, plan, columns, shared, {step, scales, biases, words},
                                             total);
      }
      leave_partials<Blocks>(plan, total, partials + warp * plan.partial_pitch);
      __syncthreads();
      write_round(call, plan, rows, count, round, partials);
    }
  }
}

template <Storage S, bool Bf16Scales>
void launch_storage(Context& context, const LinearCall& call, const DecodePlan& plan) {
  const Grid grid{plan.grid, dim3(kDecodeWarps * kWarp), to_size(plan.shared_bytes)};
  constexpr int kFew = Fragment<S>::kAffine && !Bf16Scales ? 4 : 1;  // as in decode_plan()
  launch(context, plan.blocks == 1 ? linear_decode<S, Bf16Scales, kFew> : linear_decode<S, Bf16Scales, 4>,
         grid, call, plan, context.fault());
}

}  // namespace sluice::backend::cuda::linear::decode
