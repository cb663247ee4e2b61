#include "sluice/ops/attention/mla_turboquant_attention.h"

#include "backend/cpu/attention/packed/call.h"

namespace sluice::backend::cpu::attention::packed {

namespace {

// The view with an additional dimension of one head at `at`.
ops::ConstView one_head(const ops::ConstView& view, int at) {
  if (!view.present()) return {};
  ops::ConstView heads(view.data, view.dtype, {}, {});
  for (int d = 0; d < view.rank(); ++d) {
    if (d == at) {
      heads.shape.push_back(1);
      heads.strides.push_back(view.strides[d] * view.dim(d));
    }
    heads.shape.push_back(view.dim(d));
    heads.strides.push_back(view.strides[d]);
  }
  return heads;
}

}  // namespace

}  // namespace sluice::backend::cpu::attention::packed

namespace sluice::backend::cpu {

using namespace attention::packed;

template <>
void run(Context& context, const ops::MlaTurboquantAttention& op) {
  const int pool = op.latent_codes.rank() - 2;
  PackedCall call;
  call.q = op.q_latent;
  call.out = op.out;
  call.keys = {one_head(op.latent_codes, pool), one_head(op.latent_norms, pool), one_head(op.latent_new, 1),
               op.bits};
  call.values = call.keys;
  call.rope_q = op.q_pe;
  call.rope_cache = op.rope_cache;
  call.signs = op.signs;
  call.scale = op.scale;
  const ops::Sequences sequences(op, op.q_latent.dim(0));
  attend_packed(context, call, sequences,
                [&](std::int64_t b) { return ops::Sequences::value(op.start, b) + sequences[b].tokens(); });
}

}  // namespace sluice::backend::cpu
