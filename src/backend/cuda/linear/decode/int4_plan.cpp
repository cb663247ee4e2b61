#include "backend/cuda/linear/decode/int4_plan.h"

#include <algorithm>
#include <cstdint>

#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

bool takes_nibbles(const LinearCall& call) {
  const bool whole_inputs = call.type == ops::DType::bf16 &&
                            reinterpret_cast<std::uintptr_t>(call.x) % 16 == 0 && call.x_token % 8 == 0 &&
                            call.x_slot % 8 == 0;
  if (!whole_inputs || call.inputs % kNibbleValues != 0) return false;
  if (call.outputs * call.inputs / 2 >= 1ll << 32) return false;
  for (int i = 0; i < call.operands; ++i) {
    const Matrices& w = call.w[i];
    if (w.storage != Storage::affine4 || w.scale_type != ScaleType::bf16 || !w.uniform() ||
        w.group_size != kNibbleGroup || w.alignment != 16 || w.scale_alignment < 8)
      return false;
  }
  return true;
}

namespace {

// Lays out shared memory for plan.tokens tokens.
void lay_out(const LinearCall& call, NibblePlan& plan) {
  int end = 0;
  const auto place = [&](int bytes) {
    const int at = end;
    end += divide_up(bytes, 16) * 16;
    return at;
  };
  const bool held = plan.column_tiles > 1;
  // Neighbouring columns are in different banks.
  plan.input_pitch = to_int(2 * call.inputs) + 64;
  plan.sum_pitch = divide_up(plan.tiles * 32, 128) * 128 + 32;
  place(held ? 0 : plan.tokens * plan.input_pitch);
  plan.sums = place(held ? 0 : plan.tokens * plan.sum_pitch);
  plan.factors = place(held ? 0 : plan.tokens * plan.tiles * 4);
  plan.ring = place(kDecodeWarps * ring_tiles(held) * kRingTileBytes);
  plan.partials = place(2 * kDecodeWarps * plan.column_tiles * kTileColumns * kPartialPitch * 4);
  plan.rows = place(plan.tokens * to_int(sizeof(PassRow)));
  plan.marks = place(plan.listed ? to_int(divide_up<long long>(call.tokens * call.slots, 32)) * 4 : 0);
  plan.shared_bytes = end;
}

dim3 grid_of(const LinearCall& call, const NibblePlan& plan, const DeviceInfo& device) {
  constexpr int kReserved = 1024;  // of shared memory per block
  const int fitting = (to_int(device.shared_bytes_per_block) + kReserved) / (plan.shared_bytes + kReserved);
  const long long resident =
      device.multiprocessors *
      static_cast<long long>(std::clamp(fitting, 1, plan.column_tiles == 1 ? kFewBlocks : 1));
  const long long rows = call.tokens * call.slots;
  const long long across = call.experts == nullptr
                               ? call.slots * divide_up<long long>(call.tokens, plan.tokens)
                           : plan.by_matrix ? call.matrices
                                            : rows;
  // Many experts have no work, and one that every token chose has many passes: small shares balance this.
  const long long wanted = plan.listed ? 3 * resident : resident;
  long long share = divide_up<long long>(plan.rounds * across, wanted);
  if (plan.by_matrix) share = std::min<long long>(share, 4);
  // If one round per block needs slightly more blocks than are resident, giving some blocks two rounds would
  // take as long as giving them to all.
  if (plan.rounds * across <= wanted + wanted / 4) share = 1;
  return dim3(to_unsigned(divide_up<long long>(plan.rounds, share)), to_unsigned(across));
}

// Gives a pass as many tokens as fit into that many columns.
void size_pass(const LinearCall& call, int column_tiles, NibblePlan& plan) {
  plan.column_tiles = column_tiles;
  plan.tokens = to_int(std::min<long long>(call.tokens, column_tiles * kTileColumns));
  if (call.experts == nullptr) {
    const long long passes = divide_up<long long>(call.tokens, plan.tokens);
    plan.tokens = to_int(divide_up(call.tokens, passes));
  }
  lay_out(call, plan);
}

}  // namespace

std::optional<NibblePlan> nibble_plan(const LinearCall& call, const DeviceInfo& device) {
  if (!takes_nibbles(call)) return std::nullopt;
  NibblePlan plan;
  plan.tiles = to_int(call.inputs / kNibbleValues);
  while (call.operands << (plan.parts_log2 + 1) <= kDecodeWarps && 2 << plan.parts_log2 <= plan.tiles)
    ++plan.parts_log2;
  plan.own_tiles = divide_up(plan.tiles, 1 << plan.parts_log2);
  while (call.operands << (plan.parts_log2 + plan.row_tiles_log2 + 1) <= kDecodeWarps) ++plan.row_tiles_log2;
  plan.rounds = to_int(divide_up<long long>(call.outputs, plan.rows_of_block()));
  plan.by_matrix = call.experts != nullptr && call.tokens * call.slots > call.matrices;
  plan.listed = call.experts != nullptr && (call.tokens > 1 || plan.by_matrix);
  const auto limit = to_int(device.shared_bytes_per_block);
  // As many columns as there are registers for their inputs.
  const bool many = call.experts == nullptr && call.tokens > kTileColumns && plan.own_tiles <= 2;
  size_pass(call, !many ? 1 : plan.own_tiles == 1 && call.tokens > 2 * kTileColumns ? 4 : 2, plan);
  if (plan.shared_bytes > limit) size_pass(call, 1, plan);
  while (plan.tokens > 1 && plan.shared_bytes > limit) {
    --plan.tokens;
    lay_out(call, plan);
  }
  if (plan.shared_bytes > limit) return std::nullopt;
  plan.grid = grid_of(call, plan, device);
  return plan;
}

}  // namespace sluice::backend::cuda::linear::decode
