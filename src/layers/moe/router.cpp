#include "layers/moe/router.h"

namespace sluice::layers::moe {

void Router::choose(Device& dev, const ops::View& logits, const ops::View& experts,
                    const ops::View& weights) const {
  if (selection_bias.present())
    dev.run(ops::RouteSigmoid{.logits = logits,
                              .bias = selection_bias,
                              .experts = experts,
                              .weights = weights,
                              .k = top_k,
                              .groups = groups,
                              .top_groups = top_groups,
                              .scale = scale,
                              .normalize = normalize});
  else
    dev.run(ops::RouteSoftmax{
        .logits = logits, .experts = experts, .weights = weights, .k = top_k, .normalize = normalize});
}

}  // namespace sluice::layers::moe
