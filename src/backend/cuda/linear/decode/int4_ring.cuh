// The decode kernel for 4-bit weights besides its products: prefetching weights and writing results.
#pragma once

#include "backend/cuda/device/async_copy.cuh"
#include "backend/cuda/device/element.cuh"
#include "backend/cuda/linear/decode/int4_plan.h"
#include "backend/cuda/linear/decode/row_list.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

inline constexpr int kNibbleThreads = kDecodeWarps * kWarp;
inline constexpr int kTileGroups = kNibbleValues / kNibbleGroup;
inline constexpr int kTileCodeBytes = kNibbleValues / 2;  // per row of codes
inline constexpr int kTileScaleBytes = kTileGroups * 2;   // per row of scales, and of biases

__device__ __forceinline__ uint4 load_shared_16(unsigned address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address));
  return v;
}
__device__ __forceinline__ uint2 load_shared_8(unsigned address) {
  uint2 v;
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address));
  return v;
}
__device__ __forceinline__ unsigned load_shared_4(unsigned address) {
  unsigned v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address));
  return v;
}

// A warp's place in the block, and the sequence of weight tiles that it processes.
class TileWalk {
 public:
  // A warp's part of K, rows and operand, within the block.
  struct Place {
    int part;
    int row;
    int operand;
  };

  __device__ __forceinline__ TileWalk(const LinearCall& call, const NibblePlan& plan, const Place& place)
      : call_(call), plan_(plan), part_(place.part), row_(place.row), operand_(place.operand) {}
  __device__ __forceinline__ TileWalk(const LinearCall& call, const NibblePlan& plan)
      : call_(call), plan_(plan) {
    const int warp = to_int(threadIdx.x) / kWarp;
    part_ = warp & ((1 << plan.parts_log2) - 1);
    const int across = warp >> plan.parts_log2;
    row_ = (across & ((1 << plan.row_tiles_log2) - 1)) * kTileRows;
    operand_ = across >> plan.row_tiles_log2;
  }
  __device__ __forceinline__ int part() const { return part_; }

 protected:
  __device__ __forceinline__ MatrixPointers begin_walk(int matrix) {
    round_ = to_int(blockIdx.x);
    tile_ = part_;
    return call_.w[operand_][matrix];
  }
  __device__ __forceinline__ void advance() {
    tile_ += 1 << plan_.parts_log2;
    if (tile_ < plan_.tiles) return;
    tile_ = part_;
    round_ += to_int(gridDim.x);
  }
  __device__ __forceinline__ bool inside() const { return round_ < plan_.rounds; }
  // Row `row` of the tile; past the matrix's end, its last row.
  __device__ __forceinline__ unsigned row_at(int row) const {
    return to_unsigned(min(round_ * plan_.rows_of_block() + row_ + row, to_int(call_.outputs) - 1));
  }
  // Offsets from a matrix's first code and from its first scale; a matrix has less than 4 GB.
  __device__ __forceinline__ unsigned codes_at(unsigned row) const {
    return row * to_unsigned(call_.w[0].row_bytes) + to_unsigned(tile_ * kTileCodeBytes);
  }
  __device__ __forceinline__ unsigned scales_at(unsigned row) const {
    return row * to_unsigned(call_.w[0].scale_row_bytes) + to_unsigned(tile_ * kTileScaleBytes);
  }

 private:
  const LinearCall& call_;
  const NibblePlan& plan_;
  int part_, row_, operand_;
  int round_ = 0;
  int tile_ = 0;
};

// Prefetches the tiles into a ring buffer in shared memory, kDepth tiles ahead: rows of codes, then the
// scales and biases of every row next to each other.
template <int kDepth>
class WeightRing : public TileWalk {
 public:
  template <class... Place>
  __device__ __forceinline__ WeightRing(const LinearCall& call, const NibblePlan& plan, std::byte* shared,
                                        const Place&... place)
      : TileWalk(call, plan, place...),
        ring_(shared_address(shared) +
              to_unsigned(plan.ring + threadIdx.x / kWarp * kDepth * kRingTileBytes)) {}

  __device__ __forceinline__ void begin(int matrix) {
    const MatrixPointers at = begin_walk(matrix);
    codes_ = at.values + threadIdx.x % 8 * 16;
    scales_ = threadIdx.x % 2 == 0 ? at.scales : at.biases;
#pragma unroll 1
    for (int i = 0; i < kDepth; ++i) ask();
  }
  __device__ __forceinline__ void begin_tile() const {
    wait_for_copies<kDepth - 1>();
    __syncwarp();
  }
  // Codes of row lane/4 + 8r.
  __device__ __forceinline__ uint2 codes(int r, int g) const {
    const unsigned lane = threadIdx.x % kWarp;
    return load_shared_8(tile_address() + (lane / 4 + 8 * r) * kRingRowBytes +
                         g * (kTileCodeBytes / kTileGroups) + lane % 4 * 8);
  }
  __device__ __forceinline__ uint2 scales(int r) const {
    return load_shared_8(scale_address(r));
  }
  __device__ __forceinline__ unsigned biases(int r) const {
    return load_shared_4(scale_address(r) + kTileScaleBytes + threadIdx.x % 2 * 4);
  }
  __device__ __forceinline__ void end_tile() {
    __syncwarp();
    ask();
  }

 private:
  static constexpr int kRingScales = kTileRows * kRingRowBytes;

  __device__ __forceinline__ unsigned tile_address() const {
    return ring_ + to_unsigned(slot_ * kRingTileBytes);
  }
  __device__ __forceinline__ unsigned scale_address(int r) const {
    return tile_address() + kRingScales + (threadIdx.x % kWarp / 4 + 8 * r) * 2 * kTileScaleBytes;
  }
  // Starts to fill the slot that was consumed last.
  __device__ __forceinline__ void ask() {
    if (inside()) {
      const unsigned lane = threadIdx.x % kWarp;
      const unsigned to = tile_address() + lane / 8 * kRingRowBytes + lane % 8 * 16;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to + i * 4 * kRingRowBytes),
                     "l"(codes_ + codes_at(row_at(to_int(lane / 8) + 4 * i)))
                     : "memory");
      asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(tile_address() + kRingScales +
                                                                    lane * kTileScaleBytes),
                   "l"(scales_ + scales_at(row_at(to_int(lane / 2))))
                   : "memory");
      advance();
    }
    close_copies();
    slot_ = slot_ + 1 == kDepth ? 0 : slot_ + 1;
  }

  unsigned ring_;
  const std::byte* codes_ = nullptr;   // the lane's chunk, in the matrix's first row
  const std::byte* scales_ = nullptr;  // or biases, whichever the lane copies
  int slot_ = 0;
};

// Stores a warp's results in shared memory: [column][row].
template <int kColumnTiles>
__device__ __forceinline__ void leave_partials(const float (&total)[kColumnTiles][4], float* to) {
  const int lane = to_int(threadIdx.x) % kWarp;
  float* const at = to + lane % 4 * 2 * kPartialPitch + lane / 4;
#pragma unroll
  for (int b = 0; b < kColumnTiles; ++b)
#pragma unroll
    for (int i = 0; i < 4; ++i) at[(b * kTileColumns + i % 2) * kPartialPitch + i / 2 * 8] = total[b][i];
}

// What a round of one token adds its results to: a thread's element is loaded while the products are
// computed.
template <bool kAdds>
class Residual {
 public:
  __device__ __forceinline__ Residual(void* residual, const LinearCall& call, const NibblePlan& plan,
                                      int round) {
    const int n = (round << (plan.row_tiles_log2 + 4)) + to_int(threadIdx.x);
    if (!kAdds || to_int(threadIdx.x) >= plan.rows_of_block() || n >= call.outputs) return;
    at_ = static_cast<Bf16*>(residual) + n;
    before_ = to_float(*at_);
  }
  // Adds the product as rounded for storage.
  __device__ __forceinline__ void add(float product) const {
    if (kAdds && at_ != nullptr) *at_ = from_float<Bf16>(before_ + to_float(from_float<Bf16>(product)));
  }

 private:
  Bf16* at_ = nullptr;
  float before_ = 0;
};

// The partial results of a block's warps for a round, and what its results are added to.
template <bool kAdds>
struct RoundSums {
  int round;
  const float* partials;
  const Residual<kAdds>& residual;
};

// Adds up the partial results of each tile's warps in a fixed order, and writes the rows of a round.
template <int kColumnTiles, bool kAdds>
__device__ __forceinline__ void write_round(const LinearCall& call, const NibblePlan& plan,
                                            const RowList& rows, int count, const RoundSums<kAdds>& sums) {
  constexpr int kWarpFloats = kColumnTiles * kTileColumns * kPartialPitch;
  const int rows_log2 = plan.row_tiles_log2 + 4;
#pragma unroll 1
  for (int i = threadIdx.x; i < count << rows_log2; i += kNibbleThreads) {
    const int row = i & ((1 << rows_log2) - 1);
    const int token = i >> rows_log2;
    const int n = (sums.round << rows_log2) + row;
    if (n >= call.outputs) continue;
    const auto sum = [&](int operand) {
      const int warp = ((operand << plan.row_tiles_log2) + row / kTileRows) << plan.parts_log2;
      const float* from = sums.partials + warp * kWarpFloats + token * kPartialPitch + row % kTileRows;
      float value = 0;
#pragma unroll
      for (int part = 0; part < kDecodeWarps; ++part)
        if (part < 1 << plan.parts_log2) value += from[part * kWarpFloats];
      return value;
    };
    float result = sum(0);
    if (call.operands == 2) result = result / (1.0f + expf(-result)) * sum(1);
    call.store(rows[token].out + n, result);
    sums.residual.add(result);
  }
}

}  // namespace sluice::backend::cuda::linear::decode
