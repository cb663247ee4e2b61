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

  template <class Op>
  static constexpr auto fields() {
    return contract(input("x", &Op::x, TypeClass::activation, "*"),
                    input("gate", &Op::gate, TypeClass::activation, "*"),
                    output_over("out", &Op::out, TypeClass::activation, "*"));
  }
};

}  // namespace sluice::ops
