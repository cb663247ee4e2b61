// One SwiGLU block.
#pragma once

#include "layers/device.h"

namespace sluice::layers {

struct Mlp {
  ops::Weight gate_proj;  // [intermediate, hidden]
  ops::Weight up_proj;    // [intermediate, hidden]
  ops::Weight down_proj;  // [hidden, intermediate]

  // y [T,hidden] from h [T,hidden], in two products.
  void project(Device& dev, const ops::View& h, const ops::View& y) const;
  ops::GateUpSwiglu first_product(const ops::View& h, const ops::View& inner) const;
  ops::Matmul second_product(const ops::View& inner, const ops::View& y) const;
  // x [T,hidden] += MLP of the normalised h.
  void forward(Device& dev, const ops::View& h, const ops::View& x) const;
};

}  // namespace sluice::layers
