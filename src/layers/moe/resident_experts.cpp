#include "layers/moe/resident_experts.h"

#include "layers/moe.h"

namespace sluice::layers::moe {

void ResidentExperts::forward(Device& dev, const Moe& moe, const Input& in) const {
  const Chosen chosen = moe.choose(dev, in);
  const std::int64_t tokens = in.h.dim(0);
  const ops::View inner = dev.take({tokens, moe.router.top_k, moe.gate_proj.shape()[1]});
  const ops::ExpertGateUpSwiglu first{
      .x = in.h, .gate_w = moe.gate_proj, .up_w = moe.up_proj, .experts = chosen.experts, .out = inner};
  const ops::ExpertMatmul second{
      .x = inner, .w = moe.down_proj, .experts = chosen.experts, .out = chosen.out};
  if (chosen.shared_out.present()) {
    const Mlp& shared = moe.shared_expert;
    const ops::View shared_inner = dev.take({tokens, shared.gate_proj.shape()[0]});
    dev.run_together(first, shared.first_product(in.h, shared_inner));
    dev.run_together(second, shared.second_product(shared_inner, chosen.shared_out));
  } else {
    dev.run(first);
    dev.run(second);
  }
  moe.combine(dev, in, chosen);
}

}  // namespace sluice::layers::moe
