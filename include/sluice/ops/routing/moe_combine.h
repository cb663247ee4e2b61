#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Adds the chosen experts and the shared expert to the residual, in slot order.
struct MoeCombine {
  static constexpr std::string_view kName = "moe_combine";
  static constexpr std::string_view kFamily = "Mixture of experts";
  static constexpr std::string_view kFormula =
      "out = residual + sum_j weights[j] * expert_out[j] + sigmoid(shared_gate) * shared_out";

  ConstView residual;
  ConstView expert_out;
  ConstView weights;
  ConstView shared_out;
  ConstView shared_gate;
  View out;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("residual", &Op::residual, TypeClass::activation, "T,D"),
                    may_be_empty(input("expert_out", &Op::expert_out, TypeClass::activation, "T,k,D")),
                    may_be_empty(input("weights", &Op::weights, TypeClass::f32, "T,k")),
                    optional_input("shared_out", &Op::shared_out, TypeClass::activation, "T,D"),
                    optional_input_either("shared_gate", &Op::shared_gate, TypeClass::activation, "T", "T,1"),
                    output_over("out", &Op::out, TypeClass::activation, "T,D"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
