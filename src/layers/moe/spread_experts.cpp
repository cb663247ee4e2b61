#include "layers/moe/spread_experts.h"

#include <algorithm>

#include "layers/moe.h"
#include "layers/moe/gathered_choices.h"
#include "layers/moe/host_part.h"

namespace sluice::layers::moe {

template <class F>
void SpreadExperts::with_own(const Moe& moe, const RemoteExperts::Question& question, F&& compute) const {
  std::vector<Choice> own_choices = choices_of(question.chosen);
  std::erase_if(own_choices, [this](const Choice& choice) { return choice.expert >= own; });
  std::vector<std::int32_t> guessed;
  if (question.guessed.present())
    for (const Choice& choice : choices_of(question.guessed))
      if (choice.expert < own) guessed.push_back(choice.expert);
  compute(Choices(std::move(own_choices)),
          ExpertSupply{moe.gate_proj, moe.up_proj, moe.down_proj, cache, layer, guessed});
}

void SpreadExperts::compute_own(Device& dev, const Moe& moe, const RemoteExperts::Question& question) const {
  const Scope scope = dev.scope();
  GatheredRows rows(dev, {question.h.data, question.out.data, question.h.dtype}, moe.gate_proj.shape(),
                    std::max(question.h.dim(0), question.chosen.dim(1)));
  if (dev.planning()) return;
  with_own(moe, question,
           [&](const Choices& choices, const ExpertSupply& supply) { rows.compute(choices, supply); });
}

// The device computes the shared expert while processors compute the chosen ones.
void SpreadExperts::forward_beside(Device& dev, const Moe& moe, const Input& in,
                                   const RemoteExperts::Question& question,
                                   const ops::View& shared_out) const {
  if (dev.planning()) return moe.project_shared(dev, in.h, shared_out);
  const RemoteExperts::Question here = host->fetch(question);
  others->request(here);
  moe.project_shared(dev, in.h, shared_out);
  with_own(moe, here,
           [&](const Choices& choices, const ExpertSupply& supply) { host->compute(here, choices, supply); });
  others->await();
  host->put(here, question.out);
}

// Many tokens choose nearly all experts, so there is nothing to predict.
ops::View SpreadExperts::guess(Device& dev, const ops::View& x) const {
  if (!foresight.present()) return {};
  const bool few = x.dim(0) * foresight.router.top_k <= foresight.router.gate.shape()[0];
  return few || dev.planning() ? foresight.guess(dev, x) : ops::View();
}

void SpreadExperts::forward(Device& dev, const Moe& moe, const Input& in) const {
  const Chosen chosen = moe.choose(dev, in);
  const Scope scope = dev.scope();
  const RemoteExperts::Question question{layer,          dev.phase(), in.h,
                                         chosen.experts, chosen.out,  guess(dev, in.x)};
  if (host != nullptr) {
    forward_beside(dev, moe, in, question, chosen.shared_out);
    return moe.combine(dev, in, chosen);
  }
  if (!dev.planning()) others->request(question);
  compute_own(dev, moe, question);
  moe.project_shared(dev, in.h, chosen.shared_out);
  if (!dev.planning()) others->await();
  moe.combine(dev, in, chosen);
}

}  // namespace sluice::layers::moe
