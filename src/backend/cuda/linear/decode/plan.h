// How the decode kernel cuts a call: which warp does what, and where things lie in shared memory.
#pragma once

#include <optional>

#include "backend/cuda/linear/linear.h"

namespace sluice::backend::cuda::linear::decode {

inline constexpr int kDecodeWarps = 8;
inline constexpr int kTileRows = 16;  // of weights, a warp
inline constexpr int kTileColumns = 8;
// That fit in with the kernel's registers.
constexpr int blocks_per_multiprocessor(int blocks) {
  return blocks == 1 ? 4 : 2;
}

struct PassRow {  // elements
  long long x;
  long long out;
};

// Which rows of the call a block multiplies.
struct RowPlan {
  int tokens = 1;          // of a pass
  bool listed = false;     // experts: a block looks for the rows of its matrix
  bool by_matrix = false;  // experts: block y serves one matrix, counted from the last, not that of row y
  // Bytes from the start of shared memory.
  int rows = 0;
  int marks = 0;
};

struct DecodePlan : RowPlan {
  // A block's warps: operands x tiles of rows x parts of K. Powers of two: kernels shift.
  int tiles_log2 = 0;
  int parts_log2 = 0;
  // Columns of the tensor cores' tiles: token x terms x ways. Terms: BF16 numbers that sum up to an input.
  // Ways: groups of weights that one tile multiplies at once, each with a column of its own that is zero
  // outside the group.
  int terms = 1;
  int ways_log2 = 0;
  int blocks = 1;  // tiles of eight columns that the kernel has room for, 1 or 4
  int steps = 0;   // of K
  int rounds = 0;  // N in rows of a block
  int group_log2 = 0;
  int groups = 0;                  // of K, the last step's padding included
  unsigned eights_reciprocal = 0;  // 2^32 over the eights of a padded row, rounded up
  bool whole_inputs = false;       // BF16 rows of 16-byte chunks

  int scale_granule = 1;   // bytes that scales are copied by
  int scale_granules = 0;  // of a row, padding included
  int scale_pitch = 0;     // bytes from a row of scales to the next
  int scale_buffers = 1;   // rounds whose scales are there or under way
  // Bytes from the start of shared memory; inputs are at 0.
  int input_pitch = 0;
  int zeros = 0;
  int ring = 0;  // of weights
  int sums = 0;
  int scales = 0;
  int partials = 0;
  int partial_pitch = 0;  // floats from a warp's partial results to the next warp's
  int shared_bytes = 0;

  dim3 grid;

  constexpr int parts() const { return 1 << parts_log2; }
  constexpr int rows_of_block() const { return kTileRows << tiles_log2; }
};

// Nothing where the tuned kernel does not take the call.
std::optional<DecodePlan> decode_plan(const LinearCall& call, const DeviceInfo& device);

// Chooses the instantiation; one file each for the families of storage.
void launch_dense(Context& context, const LinearCall& call, const DecodePlan& plan);
void launch_affine(Context& context, const LinearCall& call, const DecodePlan& plan);
void launch_minifloat(Context& context, const LinearCall& call, const DecodePlan& plan);

}  // namespace sluice::backend::cuda::linear::decode
