#include "layers/moe/streamed_experts.h"

#include <algorithm>

#include "base/integer_cast.h"
#include "layers/moe.h"
#include "layers/moe/gathered_choices.h"

namespace sluice::layers::moe {

// Tokens that choose more experts than there are slots keep the disk busy without predictions.
void StreamedExperts::read_ahead(Device& dev, const ops::View& x, experts::Cache::Pass& pass) const {
  if (!foresight.present() || x.dim(0) * foresight.router.top_k > cache->slots() || !pass.trusts_guesses())
    return;
  const Scope scope = dev.scope();
  const ops::View guessed = foresight.guess(dev, x);
  pass.read_ahead(layer + 1,
                  std::span(static_cast<const std::int32_t*>(guessed.data), to_size(guessed.elements())));
}

void StreamedExperts::compute(Device& dev, const Input& in, const Chosen& chosen,
                              FunctionRef<void()> meanwhile) const {
  const Scope scope = dev.scope();
  GatheredRows rows(dev, {in.h.data, chosen.out.data, in.h.dtype},
                    cache->store().layer(layer).gate_proj.shape(), std::max(in.h.dim(0), chosen.out.dim(1)));
  if (dev.planning()) {
    if (foresight.present()) foresight.guess(dev, in.x);
    return meanwhile();
  }
  const Choices choices(choices_of(chosen.experts));
  experts::Cache::Pass pass(*cache, layer, choices.experts());
  read_ahead(dev, in.x, pass);
  meanwhile();
  rows.compute(choices, pass);
}

void StreamedExperts::forward(Device& dev, const Moe& moe, const Input& in) const {
  const Chosen chosen = moe.choose(dev, in);
  compute(dev, in, chosen, [&] { moe.project_shared(dev, in.h, chosen.shared_out); });
  moe.combine(dev, in, chosen);
}

}  // namespace sluice::layers::moe
