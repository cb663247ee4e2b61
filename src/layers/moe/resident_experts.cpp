#include "layers/moe/resident_experts.h"

#include "layers/moe.h"

namespace sluice::layers::moe {

void ResidentExperts::forward(Device& dev, const Moe& moe, const Input& in) const {
  const std::int64_t tokens = in.h.dim(0);
  const std::int64_t k = moe.router.top_k;
  const ops::View chosen = dev.take({tokens, k}, ops::DType::i32);
  const ops::View weights = dev.take({tokens, k}, ops::DType::f32);
  const ops::View out = dev.take({tokens, k, in.x.dim(1)});
  const ops::View shared_out = moe.take_shared(dev, in.h);
  const ops::View inner = dev.take({tokens, k, moe.gate_proj.shape()[1]});
  moe.router.choose(dev, in.logits, chosen, weights);
  dev.run(ops::ExpertGateUpSwiglu{
      .x = in.h, .gate_w = moe.gate_proj, .up_w = moe.up_proj, .experts = chosen, .out = inner});
  dev.run(ops::ExpertMatmul{.x = inner, .w = moe.down_proj, .experts = chosen, .out = out});
  moe.project_shared(dev, in.h, shared_out);
  moe.combine(dev, in, out, weights, shared_out);
}

}  // namespace sluice::layers::moe
