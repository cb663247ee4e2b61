#include "sluice/ops/attention/turboquant_attention.h"

#include "backend/cpu/attention/packed/call.h"

namespace sluice::backend::cpu {

using namespace attention::packed;

template <>
void run(Context& context, const ops::TurboquantAttention& op) {
  PackedCall call;
  call.q = op.q;
  call.out = op.out;
  call.keys = {op.k_codes, op.k_norms, op.k_new, op.k_bits};
  call.values = {op.v_codes, op.v_norms, op.v_new, op.v_bits};
  call.signs = op.signs;
  call.ring_start = op.ring_start;
  call.window = op.window;
  call.scale = op.scale;
  call.rotated = op.rotated;
  const ops::Sequences sequences(op, op.q.dim(0));
  attend_packed(context, call, sequences, [&](std::int64_t b) { return sequences.length(op, b); });
}

}  // namespace sluice::backend::cpu
