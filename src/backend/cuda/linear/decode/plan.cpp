#include "backend/cuda/linear/decode/plan.h"

#include <algorithm>
#include <cstdint>

#include "backend/cuda/linear/decode/storage_shape.h"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

namespace {

bool takes(const LinearCall& call, const StorageShape& shape) {
  const Matrices& first = call.w[0];
  if (!shape.dense && call.inputs % 32 != 0) return false;
  if (call.inputs > (1 << 24) || call.outputs > (1 << 30)) return false;
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

// Lays out shared memory for plan.tokens tokens.
void lay_out(const LinearCall& call, const StorageShape& shape, DecodePlan& plan) {
  constexpr int kZeroBytes = 256;
  const auto columns = plan.tokens * plan.terms;
  const int padded = plan.steps * shape.step_values;
  const int depth = shape.depth(plan.blocks);
  int end = 0;
  const auto place = [&](int bytes) {
    const int at = end;
    end += divide_up(bytes, 16) * 16;
    return at;
  };
  plan.input_pitch = divide_up(2 * padded, 128) * 128 + 64;  // neighbouring columns in different banks
  plan.eights_reciprocal =
      static_cast<unsigned>(divide_up<std::uint64_t>(std::uint64_t{1} << 32, padded / 8));
  place(columns * plan.input_pitch);
  plan.zeros = place(kZeroBytes);
  plan.ring = place(kDecodeWarps * depth * 2 * shape.words * 4 * 32);
  plan.groups = padded >> plan.group_log2;
  plan.sums = place(shape.kinds == 2 ? columns * plan.groups * 4 : 0);
  // Rows are in different banks.
  const auto group_bytes = to_int(call.w[0].scale_row_bytes * call.w[0].group_size / call.inputs);
  plan.scale_granules = divide_up(plan.groups * group_bytes, plan.scale_granule);
  plan.scale_pitch = divide_up(plan.groups * group_bytes, 16) * 16 + 16;
  // As many as weights are prefetched.
  plan.scale_buffers = std::min(plan.rounds, divide_up(depth, plan.steps >> plan.parts_log2) + 1);
  plan.scales =
      place(plan.scale_buffers * call.operands * shape.kinds * plan.rows_of_block() * plan.scale_pitch);
  plan.partial_pitch = (plan.blocks * kTileColumns * kTileRows) >> plan.ways_log2;
  plan.partials = place(kDecodeWarps * plan.partial_pitch * 4);
  plan.rows = place(plan.tokens * to_int(sizeof(PassRow)));
  plan.marks = place(plan.listed ? to_int(divide_up<long long>(call.tokens * call.slots, 32)) * 4 : 0);
  plan.shared_bytes = end;
}

// Blocks resident on a multiprocessor, according to the kernel's launch bounds.
int resident_blocks(const DecodePlan& plan, const DeviceInfo& device) {
  constexpr int kReserved = 1024;  // of shared memory per block
  const int fitting = (to_int(device.shared_bytes_per_block) + kReserved) / (plan.shared_bytes + kReserved);
  return std::clamp(fitting, 1, blocks_per_multiprocessor(plan.blocks));
}

dim3 grid_of(const LinearCall& call, const DecodePlan& plan, const DeviceInfo& device) {
  const long long rows = call.tokens * call.slots;
  const long long across = call.experts == nullptr
                               ? call.slots * divide_up<long long>(call.tokens, plan.tokens)
                           : plan.by_matrix ? call.matrices
                                            : rows;
  // Blocks that are not resident at once run in several waves. Many experts have no work, and one that every
  // token chose has many passes: smaller shares balance this.
  const long long waves = plan.by_matrix ? 12 : plan.listed ? 3 : 1;
  const long long wanted = waves * resident_blocks(plan, device) * device.multiprocessors;
  // If one round per block needs slightly more blocks than are resident, giving some blocks two rounds would
  // take as long as giving them to all.
  const bool one_round = across * plan.rounds <= wanted + wanted / 4;
  const long long along =
      one_round ? plan.rounds : std::clamp<long long>(divide_up(wanted, across), 1, plan.rounds);
  const long long rounds = divide_up<long long>(plan.rounds, along);
  return dim3(to_unsigned(divide_up<long long>(plan.rounds, rounds)), to_unsigned(across));
}

// The number of tokens that a pass should have room for: an expert gets only some of the call's tokens.
long long tokens_wanted(const LinearCall& call) {
  if (call.experts == nullptr) return call.tokens;
  return std::min(call.tokens, 2 * divide_up(call.tokens * call.slots, call.matrices));
}

// Whether passes of one tile of columns each are all resident at once: a matrix of few rows, such as a
// router's, then uses more of the device than with passes of many tokens.
bool has_few_rows(const LinearCall& call, const DecodePlan& plan, int columns, const DeviceInfo& device) {
  if (call.experts != nullptr || columns > kTileColumns) return false;
  const long long passes = divide_up<long long>(call.tokens, kTileColumns / columns);
  return call.slots * plan.rounds * passes <= blocks_per_multiprocessor(1) * device.multiprocessors / 2;
}

}  // namespace

std::optional<DecodePlan> decode_plan(const LinearCall& call, const DeviceInfo& device) {
  const StorageShape shape(call.w[0].storage);
  if (!takes(call, shape)) return std::nullopt;
  DecodePlan plan;
  plan.steps = to_int(divide_up<long long>(call.inputs, shape.step_values));
  plan.tiles_log2 = call.operands == 2 ? 2 : 3;
  // K is divided in two, and further only until the warps for one token fill a device: a round has fixed
  // costs, and bits must not depend on the number of tokens.
  constexpr long long kWarpsWanted = 2048;
  const long long warps = call.slots * call.operands * divide_up<long long>(call.outputs, kTileRows);
  while (plan.tiles_log2 > 0 && 2 << plan.parts_log2 <= plan.steps &&
         (plan.parts_log2 == 0 || warps << plan.parts_log2 < kWarpsWanted)) {
    --plan.tiles_log2;
    ++plan.parts_log2;
  }
  plan.rounds = to_int(divide_up<long long>(call.outputs, plan.rows_of_block()));
  while (1 << plan.group_log2 < call.w[0].group_size) ++plan.group_log2;
  plan.terms = call.type == ops::DType::f32 ? 3 : 1;
  if (!shape.dense)
    while (plan.ways_log2 < 2 && (128 >> plan.ways_log2) > call.w[0].group_size) ++plan.ways_log2;
  const int columns = plan.terms << plan.ways_log2;  // per token
  // Affine scales of other types than BF16 are too rare for a separate kernel for few columns.
  const bool rare = shape.affine && call.w[0].scale_type != ScaleType::bf16;
  const bool few = tokens_wanted(call) * columns <= kTileColumns || has_few_rows(call, plan, columns, device);
  plan.blocks = few && !rare ? 1 : 4;
  plan.tokens = to_int(std::min<long long>(call.tokens, plan.blocks * kTileColumns / columns));
  plan.scale_granule = granule_of(call);
  plan.by_matrix = call.experts != nullptr && call.tokens * call.slots > call.matrices;
  plan.listed = call.experts != nullptr && (call.tokens > 1 || plan.by_matrix);
  plan.whole_inputs = call.type == ops::DType::bf16 && reinterpret_cast<std::uintptr_t>(call.x) % 16 == 0 &&
                      call.x_token % 8 == 0 && call.x_slot % 8 == 0 && call.inputs % 8 == 0;
  // Fewer tokens per pass rather than fewer than two blocks per multiprocessor.
  const auto limit = to_int(device.shared_bytes_per_block);
  lay_out(call, shape, plan);
  while (plan.tokens > 1 && plan.shared_bytes > limit / 2 - 1024) {
    --plan.tokens;
    lay_out(call, shape, plan);
  }
  if (call.experts == nullptr) {
    const long long passes = divide_up<long long>(call.tokens, plan.tokens);
    plan.tokens = to_int(divide_up(call.tokens, passes));
    lay_out(call, shape, plan);
  }
  if (plan.shared_bytes > limit) return std::nullopt;
  plan.grid = grid_of(call, plan, device);
  return plan;
}

}  // namespace sluice::backend::cuda::linear::decode
