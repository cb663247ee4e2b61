#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Element-wise sigmoid gate.
struct SigmoidGate {
  static constexpr std::string_view kName = "sigmoid_gate";
  static constexpr std::string_view kFamily = "Linear algebra";
  static constexpr std::string_view kFormula = "out = x * sigmoid(gate)";

  ConstView x;
  ConstView gate;
  View out;

  static constexpr auto fields() {
    return std::tuple(input("x", &SigmoidGate::x, TypeClass::activation, "*"),
                      input("gate", &SigmoidGate::gate, TypeClass::activation, "*"),
                      output_over("out", &SigmoidGate::out, TypeClass::activation, "*"));
  }
};

}  // namespace sluice::ops
