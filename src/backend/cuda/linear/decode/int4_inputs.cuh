// The inputs of the decode kernel for 4-bit weights: for every tile of K the lanes' groups of eight as right
// operands, and the right operand of the product with the tile's biases. For lane quarter q the latter holds
// the pairs (k, k+1) at k = 2q and 2q + 8, where k = 4 * term + group; the terms are three BF16 numbers that
// add up to the sum of a group's inputs. Columns past the last repeat it, and their results are not read.
#pragma once

#include "backend/cuda/device/element.cuh"
#include "backend/cuda/linear/decode/int4_half.cuh"
#include "backend/cuda/linear/decode/int4_ring.cuh"
#include "backend/cuda/linear/decode/normed_row.cuh"
#include "backend/cuda/linear/decode/weight_fragment.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

__device__ __forceinline__ float sum_of_eight(const uint4& eight) {
  float sum = 0;
  for (const unsigned pair : {eight.x, eight.y, eight.z, eight.w})
    sum += __uint_as_float(pair << 16) + __uint_as_float(pair & 0xffff0000u);
  return sum;
}

// Three BF16 numbers that add up to `sum`, by truncation; infinities and NaN are in the first.
struct SumTerms {
  unsigned short at[3];

  __device__ __forceinline__ explicit SumTerms(float sum) {
    const bool finite = fabsf(sum) <= 3.402823466e38f;
    const float rest = finite ? sum - truncated(sum) : 0.0f;
    at[0] = upper(sum == sum ? sum : __uint_as_float(0x7fc00000u));
    at[1] = upper(rest);
    at[2] = upper(rest - truncated(rest));
  }

 private:
  __device__ static __forceinline__ unsigned short upper(float x) {
    return static_cast<unsigned short>(__float_as_uint(x) >> 16);
  }
};

// Inputs of up to eight tokens in shared memory, for any K.
class StagedInputs {
 public:
  static constexpr int kColumnTiles = 1;
  static constexpr int kOwnTiles = 0;  // any number

  __device__ __forceinline__ void load(const LinearCall& call, const NibblePlan& plan, const RowList& rows,
                                       int count, std::byte* shared) {
    fill(call, plan, rows, count, shared);
    find(plan, count, shared);
  }
  // Inputs of one token, normalised while they are loaded.
  __device__ __forceinline__ void load(const NibblePlan& plan, const NormedRow& row, std::byte* shared) {
    uint4 chunks[NormedRow::kHeld];
    row.load(chunks);
#pragma unroll
    for (int i = 0; i < NormedRow::kHeld; ++i)
      if (row.inside(i)) put(plan, 0, row.chunk(i) / kWarp, chunks[i], shared);
    find(plan, 1, shared);
  }
  // Inputs of one token, in a column of the warp's own: it stores the tiles that it reads, `part` and every
  // `parts`th.
  __device__ __forceinline__ void load_part(const NibblePlan& plan, const Bf16* row, int column, int part,
                                            int parts, std::byte* shared) {
    const int lane = to_int(threadIdx.x) % kWarp;
    for (int tile = part; tile < plan.tiles; tile += parts)
      put(plan, column, tile, reinterpret_cast<const uint4*>(row + tile * kNibbleValues)[lane], shared);
    __syncwarp();
    read_at(plan, column, {column, column}, shared);
  }
  // Inputs of tile `tile` of K, the warp's tile number `own`: for a group, and for the first or second half
  // of the lane's part.
  __device__ __forceinline__ uint4 eight(int tile, int, int group, int half, int) const {
    return load_shared_16(inputs_ + to_unsigned(tile * kInputBytes) + (group * 2 + half) * 64);
  }
  __device__ __forceinline__ uint2 sums(int tile, int, int) const {
    return load_shared_8(sums_ + to_unsigned(tile * kSumBytes));
  }

  // The factors that undo the scaling in the results of the lane's two columns.
  __device__ __forceinline__ float2 factors(int tile, int, int) const {
    return {__uint_as_float(load_shared_4(factors_[0] + to_unsigned(tile * 4))),
            __uint_as_float(load_shared_4(factors_[1] + to_unsigned(tile * 4)))};
  }

 private:
  static constexpr int kInputBytes = kNibbleValues * 2;  // per tile and column
  static constexpr int kSumBytes = 32;

  __device__ static __forceinline__ void fill(const LinearCall& call, const NibblePlan& plan,
                                              const RowList& rows, int count, std::byte* shared) {
    constexpr int kBatch = 4;  // loads in flight
    const int lane = to_int(threadIdx.x) % kWarp;
    const int items = count * plan.tiles;
#pragma unroll 1
    for (int first = to_int(threadIdx.x) / kWarp; first < items; first += kBatch * kDecodeWarps) {
      uint4 loaded[kBatch];
      int token[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int item = min(first + i * kDecodeWarps, items - 1);
        token[i] = item / plan.tiles;
        loaded[i] = reinterpret_cast<const uint4*>(static_cast<const Bf16*>(call.x) + rows[token[i]].x +
                                                   (item - token[i] * plan.tiles) * kNibbleValues)[lane];
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int item = min(first + i * kDecodeWarps, items - 1);
        put(plan, token[i], item - token[i] * plan.tiles, loaded[i], shared);
      }
    }
  }
  // Stores the lane's eight inputs of a tile. To be called by the whole warp.
  __device__ static __forceinline__ void put(const NibblePlan& plan, int token, int tile, const uint4& eight,
                                             std::byte* shared) {
    const int lane = to_int(threadIdx.x) % kWarp;
    const int group = lane / 8;
    std::byte* const eights = shared + ((group * 2 + lane % 2) * 4 + lane / 2 % 4) * 16;
    std::byte* const sums = shared + plan.sums + group / 2 * 8 + group % 2 * 2;
    unsigned largest = larger_magnitudes(eight);
    largest = __reduce_max_sync(0xffffffffu, max(largest & 0xffffu, largest >> 16));
    const HalfScale scale(largest);
    if (lane == 0) reinterpret_cast<float*>(shared + plan.factors)[token * plan.tiles + tile] = scale.back();
    *reinterpret_cast<uint4*>(eights + token * plan.input_pitch + tile * kInputBytes) =
        scale.halves(in_pair_order<PairOrder::four_apart>(eight));
    float sum = sum_of_eight(eight);
#pragma unroll
    for (int step = 1; step < 8; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane % 8 != 0) return;
    const SumTerms terms(sum);
    auto* const to = reinterpret_cast<unsigned short*>(sums + token * plan.sum_pitch + tile * kSumBytes);
    to[0] = terms.at[0];
    to[8] = terms.at[1];
    to[2] = terms.at[2];
    to[10] = 0;
  }
  // Computes where the lane reads, after all threads have stored theirs.
  __device__ __forceinline__ void find(const NibblePlan& plan, int count, std::byte* shared) {
    __syncthreads();
    const int lane = to_int(threadIdx.x) % kWarp;
    const int result = lane % 4 * 2;
    read_at(plan, min(lane / 4, count - 1), {min(result, count - 1), min(result + 1, count - 1)}, shared);
  }
  // `column` is the one that the lane multiplies, `results` those of its accumulators.
  __device__ __forceinline__ void read_at(const NibblePlan& plan, int column, const int2& results,
                                          std::byte* shared) {
    const unsigned base = shared_address(shared);
    const unsigned quarter = threadIdx.x % 4;
    inputs_ = base + to_unsigned(column * plan.input_pitch) + quarter * 16;
    sums_ = base + to_unsigned(plan.sums + column * plan.sum_pitch) + quarter * 8;
    factors_[0] = base + to_unsigned(plan.factors + results.x * plan.tiles * 4);
    factors_[1] = base + to_unsigned(plan.factors + results.y * plan.tiles * 4);
  }

  unsigned inputs_;
  unsigned sums_;
  unsigned factors_[2];
};

// Inputs of up to 8 * kTiles tokens in registers, for warps with kOwn tiles of K.
template <int kOwn, int kTiles>
class HeldInputs {
 public:
  static constexpr int kColumnTiles = kTiles;
  static constexpr int kOwnTiles = kOwn;

  __device__ __forceinline__ void load(const LinearCall& call, const NibblePlan& plan, const RowList& rows,
                                       int count, std::byte*) {
    const int lane = to_int(threadIdx.x) % kWarp;
    const int part = to_int(threadIdx.x) / kWarp & ((1 << plan.parts_log2) - 1);
#pragma unroll
    for (int own = 0; own < kOwn; ++own) {
      const int tile = min(part + (own << plan.parts_log2), plan.tiles - 1);
#pragma unroll
      for (int b = 0; b < kTiles; ++b) {
        const Bf16* from = static_cast<const Bf16*>(call.x) +
                           rows[min(b * kTileColumns + lane / 4, count - 1)].x + tile * kNibbleValues +
                           lane % 4 * 16;
#pragma unroll
        for (int i = 0; i < kEights; ++i)
          eights_[own][b][i] = *reinterpret_cast<const uint4*>(from + i / 2 * kNibbleGroup + i % 2 * 8);
      }
    }
#pragma unroll
    for (int own = 0; own < kOwn; ++own)
#pragma unroll
      for (int b = 0; b < kTiles; ++b) finish(own, b);
  }
  // A tile of a single token.
  __device__ __forceinline__ void load_tile(const Bf16* tile) {
    static_assert(kOwn == 1 && kTiles == 1);
#pragma unroll
    for (int i = 0; i < kEights; ++i)
      eights_[0][0][i] =
          *reinterpret_cast<const uint4*>(tile + threadIdx.x % 4 * 16 + i / 2 * kNibbleGroup + i % 2 * 8);
    finish(0, 0);
  }
  __device__ __forceinline__ uint4 eight(int, int own, int group, int half, int b) const {
    return eights_[own][b][group * 2 + half];
  }
  __device__ __forceinline__ uint2 sums(int, int own, int b) const {
    return sums_[own][b];
  }

  __device__ __forceinline__ float2 factors(int, int own, int b) const {
    return factors_[own][b];
  }

 private:
  static constexpr int kEights = kTileGroups * 2;  // per lane, tile and column

  // Converts loaded inputs to right operands.
  __device__ __forceinline__ void finish(int own, int b) {
    uint4(&eights)[kEights] = eights_[own][b];
    sums_[own][b] = sums_of(eights);
    unsigned largest = 0;
#pragma unroll
    for (const uint4& eight : eights) largest = __vmaxu2(largest, larger_magnitudes(eight));
    largest = __vmaxu2(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
    largest = __vmaxu2(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
    const HalfScale scale(largest);
#pragma unroll
    for (uint4& eight : eights) eight = scale.halves(in_pair_order<PairOrder::four_apart>(eight));
    const auto column = to_int(threadIdx.x % 4 * 2);
    factors_[own][b] = {__shfl_sync(0xffffffffu, scale.back(), column * 4),
                        __shfl_sync(0xffffffffu, scale.back(), column * 4 + 4)};
  }
  // The same sums, in the same order as in shared memory.
  __device__ static __forceinline__ uint2 sums_of(const uint4 (&eights)[kEights]) {
    unsigned pairs[2][3];  // by pairs of groups and by term
#pragma unroll
    for (int g = 0; g < kTileGroups; ++g) {
      float sum = sum_of_eight(eights[2 * g]) + sum_of_eight(eights[2 * g + 1]);
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const SumTerms terms(sum);
#pragma unroll
      for (int term = 0; term < 3; ++term) {
        unsigned& pair = pairs[g / 2][term];
        pair = g % 2 == 0 ? terms.at[term] : pair | static_cast<unsigned>(terms.at[term]) << 16;
      }
    }
    const unsigned quarter = threadIdx.x % 4;
    const bool second = quarter % 2 != 0;
    const auto of_pair = [&](int term) { return second ? pairs[1][term] : pairs[0][term]; };
    return {quarter < 2 ? of_pair(0) : of_pair(1), quarter < 2 ? of_pair(2) : 0u};
  }

  uint4 eights_[kOwn][kTiles][kEights];
  uint2 sums_[kOwn][kTiles];
  float2 factors_[kOwn][kTiles];
};

}  // namespace sluice::backend::cuda::linear::decode
