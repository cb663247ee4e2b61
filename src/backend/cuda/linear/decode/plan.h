// How the decode kernel divides a call among warps, and its layout of shared memory.
#pragma once

#include <optional>

#include "backend/cuda/linear/linear.h"

namespace sluice::backend::cuda::linear::decode {

inline constexpr int kDecodeWarps = 8;
inline constexpr int kTileRows = 16;  // of weights, per warp
inline constexpr int kTileColumns = 8;
// Resident blocks, limited by the kernel's registers.
constexpr int blocks_per_multiprocessor(int blocks) {
  return blocks == 1 ? 4 : 2;
}

struct PassRow {  // offsets in elements
  long long x;
  long long out;
};

// Which rows of the call a block multiplies.
struct RowPlan {
  int tokens = 1;          // per pass
  bool listed = false;     // experts: a block searches for the rows of its matrix
  bool by_matrix = false;  // experts: block y computes matrix y, counted from the last, not that of row y
  // Offsets in shared memory.
  int rows = 0;
  int marks = 0;
};

struct DecodePlan : RowPlan {
  // A block's warps: operands x tiles of rows x parts of K. All are powers of two, because kernels shift.
  int tiles_log2 = 0;
  int parts_log2 = 0;
  // Columns of the tensor cores' tiles: token x terms x ways. Terms: BF16 numbers that add up to an input.
  // Ways: groups of weights that one tile multiplies at once, each with its own column, which is zero outside
  // the group.
  int terms = 1;
  int ways_log2 = 0;
  int blocks = 1;  // tiles of eight columns that the kernel has accumulators for, 1 or 4
  int steps = 0;   // of K
  int rounds = 0;  // number of row blocks along N
  int group_log2 = 0;
  int groups = 0;                  // along K, including the padding of the last step
  unsigned eights_reciprocal = 0;  // 2^32 over the eights of a padded row, rounded up
  bool whole_inputs = false;       // BF16 rows of 16-byte chunks

  int scale_granule = 1;   // bytes per copy of scales
  int scale_granules = 0;  // per row, including padding
  int scale_pitch = 0;     // bytes between rows of scales
  int scale_buffers = 1;   // rounds whose scales are in shared memory or in flight
  // Offsets in shared memory; inputs are at 0.
  int input_pitch = 0;
  int zeros = 0;
  int ring = 0;  // of weights
  int sums = 0;
  int scales = 0;
  int partials = 0;
  int partial_pitch = 0;  // floats between the partial results of neighbouring warps
  int shared_bytes = 0;

  dim3 grid;

  constexpr int parts() const { return 1 << parts_log2; }
  constexpr int rows_of_block() const { return kTileRows << tiles_log2; }
};

// Nothing if the tuned kernel does not support the call.
std::optional<DecodePlan> decode_plan(const LinearCall& call, const DeviceInfo& device);

// Chooses the instantiation; each family of storage has a file.
void launch_dense(Context& context, const LinearCall& call, const DecodePlan& plan);
void launch_affine(Context& context, const LinearCall& call, const DecodePlan& plan);
void launch_minifloat(Context& context, const LinearCall& call, const DecodePlan& plan);

}  // namespace sluice::backend::cuda::linear::decode
