// How the decode kernel for experts of 4-bit weights cuts a call, and where things lie in shared memory.
#pragma once

#include <optional>

#include "backend/cuda/linear/decode/int4_plan.h"

namespace sluice::backend::cuda::linear::decode {

inline constexpr int kExpertWarps = 4;
inline constexpr int kBlockNumbers = kExpertWarps + 1;  // that a block's warps exchange

// The shape of the work, fixed when the kernel is compiled. Tiles of K are dealt out in turn to
// sharing x sets parts, whose sums are added up in their order.
template <int operands, int sharing, int sets, int own>
struct ExpertShape {
  static constexpr int kOperands = operands;
  static constexpr int kSharing = sharing;  // warps that share a row
  static constexpr int kSets = sets;        // parts of a warp
  static constexpr int kOwn = own;          // tiles of a part
  static constexpr int kParts = sharing * sets;
  static constexpr int kTiles = kParts * own;
  static constexpr int kWarpTiles = sets * own;
  static constexpr int kOutputs = kTileRows / operands;                   // of an item
  static constexpr int kUnits = kExpertWarps / sharing;                   // of a block
  static constexpr int kScalePitch = kTiles == 2 ? 16 : kTiles * 8 + 16;  // rows lie in different banks
  static constexpr int kScaleBytes = 2 * kTileRows * kScalePitch;         // of an item
};

struct ExpertPlan {
  int rows = 0;    // of the call
  int rounds = 0;  // N in outputs of an item
  // Bytes from the start of shared memory; the ring is at 0.
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

// Nothing where the kernel does not take the call: it wants several tokens, what the kernel for dense
// products wants, and a K that it was made for.
std::optional<ExpertPlan> expert_plan(const LinearCall& call, const DeviceInfo& device);
void launch_experts(Context& context, const LinearCall& call, const ExpertPlan& plan);

}  // namespace sluice::backend::cuda::linear::decode
