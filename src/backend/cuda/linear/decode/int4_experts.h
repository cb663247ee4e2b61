// How the decode kernel for experts with 4-bit weights divides a call, and its layout of shared memory.
#pragma once

#include <optional>

#include "backend/cuda/linear/decode/int4_plan.h"

namespace sluice::backend::cuda::linear::decode {

inline constexpr int kExpertWarps = 4;
inline constexpr int kBlockNumbers = kExpertWarps + 1;  // numbers that a block's warps exchange

// The shape of the work, a compile-time constant. Tiles of K are distributed round-robin over sharing x sets
// parts, whose sums are added in that order.
template <int operands, int sharing, int sets, int own>
struct ExpertShape {
  static constexpr int kOperands = operands;
  static constexpr int kSharing = sharing;  // warps that share a row
  static constexpr int kSets = sets;        // parts per warp
  static constexpr int kOwn = own;          // tiles per part
  static constexpr int kParts = sharing * sets;
  static constexpr int kTiles = kParts * own;
  static constexpr int kWarpTiles = sets * own;
  static constexpr int kOutputs = kTileRows / operands;                   // per item
  static constexpr int kUnits = kExpertWarps / sharing;                   // per block
  static constexpr int kScalePitch = kTiles == 2 ? 16 : kTiles * 8 + 16;  // rows are in different banks
  static constexpr int kScaleBytes = 2 * kTileRows * kScalePitch;         // per item
};

struct ExpertPlan {
  int rows = 0;    // of the call
  int rounds = 0;  // number of items along N
  // Offsets in shared memory; the ring buffer is at 0.
  int scales = 0;
  int partials = 0;
  int numbers = 0;
  int starts = 0;
  int passes = 0;
  int ids = 0;
  int ranks = 0;
  int sorted = 0;
  int shared_bytes = 0;

  int blocks = 0;
};

// Nothing if the kernel does not support the call: it needs several tokens, a K for which it is compiled, and
// what the kernel for dense products needs.
std::optional<ExpertPlan> expert_plan(const LinearCall& call, const DeviceInfo& device);
void launch_experts(Context& context, const LinearCall& call, const ExpertPlan& plan);

}  // namespace sluice::backend::cuda::linear::decode
