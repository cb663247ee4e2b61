#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// The first half of a SwiGLU block, x read once.
struct GateUpSwiglu {
  static constexpr std::string_view kName = "gate_up_swiglu";
  static constexpr std::string_view kFamily = "Linear algebra";
  static constexpr std::string_view kFormula = "out = silu(x gate_wT) * (x up_wT)";

  ConstView x;
  Weight gate_w;
  Weight up_w;
  View out;

  static constexpr auto fields() {
    return std::tuple(input("x", &GateUpSwiglu::x, TypeClass::activation, "T,K"),
                      matrix("gate_w", &GateUpSwiglu::gate_w, "N,K"),
                      matrix("up_w", &GateUpSwiglu::up_w, "N,K"),
                      output("out", &GateUpSwiglu::out, TypeClass::activation, "T,N"));
  }
};

}  // namespace sluice::ops
