#include "sluice/ops/attention/mla_attention.h"

#include "backend/cpu/attention/attend.h"

namespace sluice::backend::cpu::attention {

namespace {

// [..,S,width] as [..,S,1,width]: all heads read the only KV head.
ops::ConstView one_head(const ops::ConstView& cache) {
  ops::ConstView heads = cache;
  const int last = cache.rank() - 1;
  heads.shape[last] = 1;
  heads.shape.push_back(cache.shape.back());
  heads.strides[last] = cache.shape.back();
  heads.strides.push_back(1);
  return heads;
}

}  // namespace

}  // namespace sluice::backend::cpu::attention

namespace sluice::backend::cpu {

using namespace attention;

template <>
void run(Context& context, const ops::MlaAttention& op) {
  AttendCall call;
  call.pieces = 2;
  call.queries[0] = op.q_latent;
  call.queries[1] = op.q_pe;
  call.keys[0] = one_head(op.latent_cache);
  call.keys[1] = one_head(op.rope_cache);
  call.values = one_head(op.latent_cache);
  call.out = op.out;
  call.start = op.start;
  call.scale = op.scale;
  attend(context, call, ops::Sequences(op, op.q_latent.dim(0)));
}

}  // namespace sluice::backend::cpu
