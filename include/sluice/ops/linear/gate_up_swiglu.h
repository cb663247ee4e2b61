#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// The first half of a SwiGLU block; x is read once.
struct GateUpSwiglu {
  static constexpr std::string_view kName = "gate_up_swiglu";
  static constexpr std::string_view kFamily = "Linear algebra";
  static constexpr std::string_view kFormula = "out = silu(x gate_wT) * (x up_wT)";

  ConstView x;
  Weight gate_w;
  Weight up_w;
  View out;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("x", &Op::x, TypeClass::activation, "T,K"), matrix("gate_w", &Op::gate_w, "N,K"),
                    matrix("up_w", &Op::up_w, "N,K"), output("out", &Op::out, TypeClass::activation, "T,N"));
  }
};

}  // namespace sluice::ops
