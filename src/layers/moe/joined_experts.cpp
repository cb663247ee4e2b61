#include "layers/moe/joined_experts.h"

#include "layers/moe.h"

namespace sluice::layers::moe {

void JoinedExperts::forward(Device& dev, const Moe& moe, const Input& in) const {
  const std::int64_t tokens = in.h.dim(0);
  const std::int64_t hidden = in.x.dim(1);
  const std::int64_t k = moe.router.top_k;
  const ops::View all_choices = choices.rows(0, tokens);
  const ops::View weights = dev.take({tokens, k}, ops::DType::f32);
  const ops::View inner = dev.take({tokens, k + 1, gate_proj.shape()[1]});
  const ops::View out = dev.take({tokens, (k + 1) * hidden});
  moe.router.choose(dev, in.logits, all_choices.columns(0, k, {k}), weights);
  dev.run(ops::ExpertGateUpSwiglu{
      .x = in.h, .gate_w = gate_proj, .up_w = up_proj, .experts = all_choices, .out = inner});
  dev.run(ops::ExpertMatmul{
      .x = inner, .w = down_proj, .experts = all_choices, .out = out.reshaped({tokens, k + 1, hidden})});
  moe.combine(dev, in, out.columns(0, k * hidden, {k, hidden}), weights,
              out.columns(k * hidden, hidden, {hidden}));
}

}  // namespace sluice::layers::moe
