#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Decay and write strength of the delta rule.
struct DeltaGates {
  static constexpr std::string_view kName = "delta_gates";
  static constexpr std::string_view kFamily = "Gated delta rule";
  static constexpr std::string_view kFormula = "g = -exp(A_log) * softplus(a + dt_bias), beta = sigmoid(b)";

  ConstView a;
  ConstView b;
  ConstView A_log;
  ConstView dt_bias;
  View g;
  View beta;

  template <class Op>
  static constexpr auto fields() {
    return contract(
        input("a", &Op::a, TypeClass::activation, "T,Hv"), input("b", &Op::b, TypeClass::activation, "T,Hv"),
        input("A_log", &Op::A_log, TypeClass::parameter, "Hv"),
        input("dt_bias", &Op::dt_bias, TypeClass::parameter, "Hv"),
        output("g", &Op::g, TypeClass::f32, "T,Hv"), output("beta", &Op::beta, TypeClass::f32, "T,Hv"));
  }
};

}  // namespace sluice::ops
