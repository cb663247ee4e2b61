#include "layers/moe/foresight.h"

namespace sluice::layers::moe {

ops::View Foresight::guess(Device& dev, const ops::View& x) const {
  const std::int64_t tokens = x.dim(0);
  const ops::View experts = dev.take({tokens, router.top_k}, ops::DType::i32);
  const Scope scope = dev.scope();
  const ops::View h = dev.take(x.shape);
  const ops::View logits = dev.take({tokens, router.gate.shape()[0]}, ops::DType::f32);
  const ops::View weights = dev.take({tokens, router.top_k}, ops::DType::f32);
  dev.run(ops::RmsNorm{.x = x, .weight = norm.weight, .out = h, .eps = norm.eps});
  dev.run(ops::Matmul{.x = h, .w = router.gate, .out = logits});
  router.choose(dev, logits, experts, weights);
  return experts;
}

}  // namespace sluice::layers::moe
