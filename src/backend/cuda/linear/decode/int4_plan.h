// How the decode kernel for 4-bit weights divides a call among warps, and its layout of shared memory.
#pragma once

#include <optional>

#include "backend/cuda/linear/decode/plan.h"

namespace sluice::backend::cuda::linear::decode {

inline constexpr int kNibbleGroup = 64;
inline constexpr int kNibbleValues = 256;  // values of K that a warp multiplies at a time: four groups
inline constexpr int kFewBlocks = 3;  // per multiprocessor, by the registers of the kernel for few tokens

// Tiles in a warp's ring buffer in shared memory. Rows of codes are padded to avoid bank conflicts.
constexpr int ring_tiles(bool inputs_in_registers) {
  return inputs_in_registers ? 4 : 2;
}
inline constexpr int kRingRowBytes = kNibbleValues / 2 + 32;
inline constexpr int kRingTileBytes = kTileRows * (kRingRowBytes + kNibbleValues / kNibbleGroup * 4);
// Floats between the columns of a warp's results: lanes that write at the same time use different banks.
inline constexpr int kPartialPitch = kTileRows + 4;

struct NibblePlan : RowPlan {
  int column_tiles = 1;    // of eight tokens; inputs of more than one are held in registers
  int tiles = 0;           // of K
  int own_tiles = 0;       // maximum per warp
  int parts_log2 = 0;      // warps that share the tiles of a row; independent of the number of tokens
  int row_tiles_log2 = 0;  // warps along N
  int rounds = 0;          // number of row blocks along N
  // Offsets in shared memory; inputs are at 0.
  int input_pitch = 0;
  int sums = 0;
  int sum_pitch = 0;
  int factors = 0;  // that scale FP16 inputs, by token and tile
  int ring = 0;
  int partials = 0;
  int shared_bytes = 0;

  dim3 grid;

  constexpr int rows_of_block() const { return kTileRows << row_tiles_log2; }
};

// Whether inputs, scales and biases are BF16, groups have 64 values and rows consist of whole tiles.
bool takes_nibbles(const LinearCall& call);
// Nothing if the kernel does not support the call.
std::optional<NibblePlan> nibble_plan(const LinearCall& call, const DeviceInfo& device);
// `residual`, for one token: BF16 [N] to which the result is added, rounded as if stored; null: none.
void launch_nibbles(Context& context, const LinearCall& call, const NibblePlan& plan,
                    void* residual = nullptr);

}  // namespace sluice::backend::cuda::linear::decode
