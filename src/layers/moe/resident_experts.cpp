#include "layers/moe/resident_experts.h"

#include "layers/moe.h"

namespace sluice::layers::moe {

void ResidentExperts::forward(Device& dev, const Moe& moe, const Input& in) const {
  const Chosen chosen = moe.choose(dev, in);
  const ops::View inner = dev.take({in.h.dim(0), moe.router.top_k, moe.gate_proj.shape()[1]});
  dev.run(ops::ExpertGateUpSwiglu{
      .x = in.h, .gate_w = moe.gate_proj, .up_w = moe.up_proj, .experts = chosen.experts, .out = inner});
  dev.run(ops::ExpertMatmul{.x = inner, .w = moe.down_proj, .experts = chosen.experts, .out = chosen.out});
  moe.project_shared(dev, in.h, chosen.shared_out);
  moe.combine(dev, in, chosen);
}

}  // namespace sluice::layers::moe
