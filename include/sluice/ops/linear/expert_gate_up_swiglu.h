#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// The first half of the chosen experts' SwiGLU blocks.
struct ExpertGateUpSwiglu {
  static constexpr std::string_view kName = "expert_gate_up_swiglu";
  static constexpr std::string_view kFamily = "Linear algebra";
  static constexpr std::string_view kFormula =
      "out[t,j] = silu(x[t] gate_w[e]T) * (x[t] up_w[e]T) with e = experts[t,j]";

  ConstView x;
  ExpertWeights gate_w;  // [E,N,K]
  ExpertWeights up_w;    // [E,N,K]
  ConstView experts;
  View out;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("x", &Op::x, TypeClass::activation, "T,K"), matrix("gate_w", &Op::gate_w, "E,N,K"),
                    matrix("up_w", &Op::up_w, "E,N,K"), input("experts", &Op::experts, TypeClass::i32, "T,k"),
                    output("out", &Op::out, TypeClass::activation, "T,k,N"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
