#include "backend/cuda/decode_plan.h"

#include <algorithm>

#include "backend/cuda/launch.h"
#include "backend/cuda/storage_shape.h"

namespace sluice::backend::cuda {

namespace {

bool takes(const LinearCall& call, const StorageShape& shape) {
  const Matrices& first = call.w[0];
  if (!shape.dense && call.inputs % 32 != 0) return false;
  if (call.inputs > (1 << 24)) return false;
  for (int i = 0; i < call.operands; ++i) {
    const Matrices& w = call.w[i];
    if (w.storage != first.storage || w.scale_type != first.scale_type || w.group_size != first.group_size)
      return false;
    if (!w.uniform() || w.alignment != 16 || w.row_bytes % (4 * shape.vector_words) != 0) return false;
  }
  return true;
}

int granule_of(const LinearCall& call) {
  int granule = 16;
  for (int i = 0; i < call.operands; ++i) granule = std::min(granule, call.w[i].scale_alignment);
  while (call.w[0].scale_row_bytes % granule != 0) granule /= 2;
  return granule == 8 ? 4 : granule;
}

// Places everything in shared memory for plan.tokens tokens.
void lay_out(const LinearCall& call, const StorageShape& shape, DecodePlan& plan) {
  constexpr int kZeroBytes = 256;
  constexpr int kRowListBytes = 144;
  const auto columns = plan.tokens * plan.terms;
  const int padded = plan.strides * shape.stride_values;
  int end = 0;
  const auto place = [&](int bytes) {
    const int at = end;
    end += divide_up(bytes, 16) * 16;
    return at;
  };
  plan.input_pitch = divide_up(2 * padded, 128) * 128 + 64;  // neighbouring columns in different banks
  place(columns * plan.input_pitch);
  plan.zeros = place(kZeroBytes);
  plan.groups = padded / call.w[0].group_size;
  plan.sums = place(shape.kinds == 2 ? columns * plan.groups * 4 : 0);
  // A row's padding is read as well, and rows lie in different banks.
  const auto group_bytes = static_cast<int>(call.w[0].scale_row_bytes * call.w[0].group_size / call.inputs);
  plan.scale_pitch = divide_up(plan.groups * group_bytes, 16) * 16 + 16;
  plan.scales = place(2 * call.operands * shape.kinds * plan.tiles * kTileRows * plan.scale_pitch);
  plan.partials = place(kDecodeWarps * plan.blocks * kTileColumns * kTileRows * 4);
  plan.rows = place(kRowListBytes);
  plan.marks = place(
      call.experts != nullptr ? static_cast<int>(divide_up<long long>(call.tokens * call.slots, 32)) * 4 : 0);
  plan.shared_bytes = end;
}

dim3 grid_of(const LinearCall& call, const DecodePlan& plan, const DeviceInfo& device) {
  const long long rows = call.tokens * call.slots;
  const long long across = call.experts == nullptr
                               ? call.slots * divide_up<long long>(call.tokens, plan.tokens)
                           : plan.by_matrix ? call.matrices
                                            : rows;
  // Two blocks a multiprocessor are resident; beyond that each takes several rounds.
  const long long resident = 2 * static_cast<long long>(device.multiprocessors);
  const long long along = std::clamp<long long>(divide_up(resident, across), 1, plan.rounds);
  return dim3(static_cast<unsigned>(along), static_cast<unsigned>(across));
}

}  // namespace

std::optional<DecodePlan> decode_plan(const LinearCall& call, const DeviceInfo& device) {
  const StorageShape shape(call.w[0].storage);
  if (!takes(call, shape)) return std::nullopt;
  DecodePlan plan;
  plan.strides = static_cast<int>(divide_up<long long>(call.inputs, shape.stride_values));
  plan.tiles = kDecodeWarps / call.operands;
  while (plan.tiles > 1 && 2 * plan.parts <= plan.strides) {
    plan.tiles /= 2;
    plan.parts *= 2;
  }
  plan.rounds = static_cast<int>(divide_up<long long>(call.outputs, plan.tiles * kTileRows));
  plan.terms = call.type == ops::DType::f32 ? 3 : 1;
  if (!shape.dense)
    while (plan.ways_log2 < 2 && (128 >> plan.ways_log2) > call.w[0].group_size) ++plan.ways_log2;
  const int columns = plan.terms << plan.ways_log2;  // a token
  // Affine scales of other types than BF16 are too rare for a kernel of few columns of their own.
  const bool rare = shape.affine && call.w[0].scale_type != ScaleType::bf16;
  plan.blocks = call.tokens * columns <= kTileColumns && !rare ? 1 : 4;
  plan.tokens = static_cast<int>(std::min<long long>(call.tokens, plan.blocks * kTileColumns / columns));
  plan.scale_granule = granule_of(call);
  plan.by_matrix = call.tokens * call.slots > call.matrices;
  // Fewer tokens a pass rather than less than two blocks a multiprocessor.
  const auto limit = static_cast<int>(device.shared_bytes_per_block);
  lay_out(call, shape, plan);
  while (plan.tokens > 1 && plan.shared_bytes > limit / 2 - 1024) {
    --plan.tokens;
    lay_out(call, shape, plan);
  }
  if (plan.shared_bytes > limit) return std::nullopt;
  plan.grid = grid_of(call, plan, device);
  return plan;
}

}  // namespace sluice::backend::cuda
