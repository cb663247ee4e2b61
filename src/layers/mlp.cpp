#include "layers/mlp.h"

namespace sluice::layers {

ops::GateUpSwiglu Mlp::first_product(const ops::View& h, const ops::View& inner) const {
  return {.x = h, .gate_w = gate_proj, .up_w = up_proj, .out = inner};
}

ops::Matmul Mlp::second_product(const ops::View& inner, const ops::View& y) const {
  return {.x = inner, .w = down_proj, .out = y};
}

void Mlp::project(Device& dev, const ops::View& h, const ops::View& y) const {
  const Scope scope = dev.scope();
  const ops::View inner = dev.take({h.dim(0), gate_proj.shape()[0]});
  dev.run(first_product(h, inner));
  dev.run(second_product(inner, y));
}

void Mlp::forward(Device& dev, const ops::View& h, const ops::View& x) const {
  const Scope scope = dev.scope();
  const ops::View y = dev.take(x.shape);
  project(dev, h, y);
  dev.run(ops::Add{.a = x, .b = y, .out = x});
}

}  // namespace sluice::layers
