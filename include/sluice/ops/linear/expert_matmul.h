#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Each token times the matrices of its chosen experts.
struct ExpertMatmul {
  static constexpr std::string_view kName = "expert_matmul";
  static constexpr std::string_view kFamily = "Linear algebra";
  static constexpr std::string_view kFormula =
      "out[t,j] = x[t] w[experts[t,j]]T, or x[t,j] where every choice has a row of its own; an expert's "
      "weights are read once per call";

  ConstView x;
  ExpertWeights w;  // [E,N,K]
  ConstView experts;
  View out;

  template <class Op>
  static constexpr auto fields() {
    return contract(input_either("x", &Op::x, TypeClass::activation, "T,K", "T,k,K"),
                    matrix("w", &Op::w, "E,N,K"), input("experts", &Op::experts, TypeClass::i32, "T,k"),
                    output("out", &Op::out, TypeClass::activation, "T,k,N"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
