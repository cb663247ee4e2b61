// How the decode kernel cuts a call: which warp does what, and where things lie in shared memory.
#pragma once

#include <optional>

#include "backend/cuda/linear.h"

namespace sluice::backend::cuda {

inline constexpr int kDecodeWarps = 8;
inline constexpr int kTileRows = 16;  // of weights, a warp
inline constexpr int kTileColumns = 8;

struct DecodePlan {
  // A block's warps: operands x tiles of rows x parts of K.
  int tiles = 1;
  int parts = 1;
  // Columns of the tensor cores' tiles: token x terms x ways. Terms: BF16 numbers that sum up to an input.
  // Ways: groups of weights that one tile multiplies at once, each with a column of its own that is zero
  // outside the group.
  int terms = 1;
  int ways_log2 = 0;
  int blocks = 1;          // tiles of eight columns that the kernel has room for, 1 or 4
  int tokens = 1;          // of a pass
  int strides = 0;         // K in strides of a warp
  int rounds = 0;          // N in rows of a block
  int groups = 0;          // of K, the last stride's padding included
  bool by_matrix = false;  // experts: block y serves matrix y, not the matrix of row y

  int scale_granule = 1;  // bytes that scales are copied by
  int scale_pitch = 0;    // bytes from a row of scales to the next
  // Bytes from the start of shared memory; inputs are at 0.
  int input_pitch = 0;
  int zeros = 0;
  int sums = 0;
  int scales = 0;
  int partials = 0;
  int rows = 0;
  int marks = 0;
  int shared_bytes = 0;

  dim3 grid;
};

// Nothing where the tuned kernel does not take the call.
std::optional<DecodePlan> decode_plan(const LinearCall& call, const DeviceInfo& device);

// Chooses the instantiation; one file each for the families of storage.
void launch_dense(Context& context, const LinearCall& call, const DecodePlan& plan);
void launch_affine(Context& context, const LinearCall& call, const DecodePlan& plan);
void launch_minifloat(Context& context, const LinearCall& call, const DecodePlan& plan);

}  // namespace sluice::backend::cuda
