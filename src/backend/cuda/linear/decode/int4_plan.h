// How the decode kernel for 4-bit weights cuts a call: which warp does what, and where things lie in shared
// memory.
#pragma once

#include <optional>

#include "backend/cuda/linear/decode/plan.h"

namespace sluice::backend::cuda::linear::decode {

inline constexpr int kNibbleGroup = 64;
inline constexpr int kNibbleValues = 256;  // of K that a warp takes at a time: four groups
inline constexpr int kFewBlocks = 3;  // on a multiprocessor, by the registers of the kernel for few tokens

// Tiles of a warp's ring in shared memory; rows of codes lie a little apart against bank conflicts.
constexpr int ring_tiles(bool inputs_in_registers) {
  return inputs_in_registers ? 4 : 2;
}
inline constexpr int kRingRowBytes = kNibbleValues / 2 + 32;
inline constexpr int kRingTileBytes = kTileRows * (kRingRowBytes + kNibbleValues / kNibbleGroup * 4);
// Floats from a column of a warp's results to the next: lanes that write side by side meet no bank twice.
inline constexpr int kPartialPitch = kTileRows + 4;

struct NibblePlan : RowPlan {
  int column_tiles = 1;    // of eight tokens; inputs of more than one are held in registers
  int tiles = 0;           // of K
  int own_tiles = 0;       // of them a warp's, at most
  int parts_log2 = 0;      // warps that share the tiles of a row; the same whatever the number of tokens
  int row_tiles_log2 = 0;  // warps side by side along N
  int rounds = 0;          // N in rows of a block
  // Bytes from the start of shared memory; inputs are at 0.
  int input_pitch = 0;
  int sums = 0;
  int sum_pitch = 0;
  int factors = 0;  // of inputs in FP16, by token and tile
  int ring = 0;
  int partials = 0;
  int shared_bytes = 0;

  dim3 grid;

  constexpr int rows_of_block() const { return kTileRows << row_tiles_log2; }
};

// BF16 inputs, scales and biases, groups of 64 and rows in whole tiles.
bool takes_nibbles(const LinearCall& call);
// Nothing where the kernel does not take the call.
std::optional<NibblePlan> nibble_plan(const LinearCall& call, const DeviceInfo& device);
// `residual`, of one token: BF16 [N] that the result is added to as it is stored; null: none.
void launch_nibbles(Context& context, const LinearCall& call, const NibblePlan& plan,
                    void* residual = nullptr);

}  // namespace sluice::backend::cuda::linear::decode
