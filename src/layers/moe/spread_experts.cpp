#include "layers/moe/spread_experts.h"

#include <algorithm>

#include "layers/moe.h"
#include "layers/moe/gathered_choices.h"

namespace sluice::layers::moe {

void SpreadExperts::compute_own(Device& dev, const Moe& moe, const RemoteExperts::Question& question) const {
  const Scope scope = dev.scope();
  GatheredRows rows(dev, {question.h.data, question.out.data}, moe.gate_proj.shape(),
                    std::max(question.h.dim(0), question.chosen.dim(1)));
  if (dev.planning()) return;
  std::vector<Choice> own_choices = choices_of(question.chosen);
  std::erase_if(own_choices, [this](const Choice& choice) { return choice.expert >= own; });
  rows.compute(Choices(std::move(own_choices)), {moe.gate_proj, moe.up_proj, moe.down_proj, cache, layer});
}

void SpreadExperts::forward(Device& dev, const Moe& moe, const Input& in) const {
  const std::int64_t tokens = in.h.dim(0);
  const std::int64_t k = moe.router.top_k;
  const ops::View chosen = dev.take({tokens, k}, ops::DType::i32);
  const ops::View weights = dev.take({tokens, k}, ops::DType::f32);
  const ops::View out = dev.take({tokens, k, in.x.dim(1)});
  const ops::View shared_out = moe.take_shared(dev, in.h);
  moe.router.choose(dev, in.logits, chosen, weights);
  const RemoteExperts::Question question{layer, dev.phase(), in.h, chosen, out};
  if (!dev.planning()) others->ask(question);
  compute_own(dev, moe, question);
  moe.project_shared(dev, in.h, shared_out);
  if (!dev.planning()) others->await();
  moe.combine(dev, in, out, weights, shared_out);
}

}  // namespace sluice::layers::moe
