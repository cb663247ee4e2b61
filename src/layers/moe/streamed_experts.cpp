#include "layers/moe/streamed_experts.h"

#include <algorithm>

#include "layers/moe.h"
#include "layers/moe/gathered_choices.h"

namespace sluice::layers::moe {

// Tokens that choose more than there are slots for keep the disk busy without guesses.
void StreamedExperts::read_ahead(Device& dev, const ops::View& x, experts::Cache::Pass& pass) const {
  if (!foresight.present() || x.dim(0) * foresight.router.top_k > cache->slots() || !pass.trusts_guesses())
    return;
  const Scope scope = dev.scope();
  const ops::View guessed = foresight.guess(dev, x);
  pass.read_ahead(layer + 1, std::span(static_cast<const std::int32_t*>(guessed.data),
                                       static_cast<std::size_t>(guessed.elements())));
}

void StreamedExperts::compute(Device& dev, const Input& in, const ops::View& chosen,
                              const ops::View& expert_out, FunctionRef<void()> meanwhile) const {
  const Scope scope = dev.scope();
  GatheredRows rows(dev, {in.h.data, expert_out.data}, cache->store().layer(layer).gate_proj.shape(),
                    std::max(in.h.dim(0), expert_out.dim(1)));
  if (dev.planning()) {
    if (foresight.present()) foresight.guess(dev, in.x);
    return meanwhile();
  }
  const Choices choices(choices_of(chosen));
  experts::Cache::Pass pass(*cache, layer, choices.experts());
  read_ahead(dev, in.x, pass);
  meanwhile();
  rows.compute(choices, pass);
}

void StreamedExperts::forward(Device& dev, const Moe& moe, const Input& in) const {
  const std::int64_t tokens = in.h.dim(0);
  const std::int64_t k = moe.router.top_k;
  const ops::View chosen = dev.take({tokens, k}, ops::DType::i32);
  const ops::View weights = dev.take({tokens, k}, ops::DType::f32);
  const ops::View out = dev.take({tokens, k, in.x.dim(1)});
  const ops::View shared_out = moe.take_shared(dev, in.h);
  moe.router.choose(dev, in.logits, chosen, weights);
  compute(dev, in, chosen, out, [&] { moe.project_shared(dev, in.h, shared_out); });
  moe.combine(dev, in, out, weights, shared_out);
}

}  // namespace sluice::layers::moe
