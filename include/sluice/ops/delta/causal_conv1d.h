#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Depthwise causal convolution over time with SiLU; carries the last W-1 inputs.
struct CausalConv1d {
  static constexpr std::string_view kName = "causal_conv1d";
  static constexpr std::string_view kFamily = "Gated delta rule";
  static constexpr std::string_view kFormula =
      "out[t] = silu(sum_j virtual[t+j] * weight[:,j]) over the state followed by x; then the state "
      "becomes the last W-1 rows; saved[i] is the state after the call's tokens before save_at[i]";

  ConstView x;
  ConstView weight;
  View state;
  View out;
  ConstView seq_starts;
  ConstView slots;
  ConstView save_at = {};  // as in delta_rule
  View saved = {};         // present if save_at is

  template <class Op>
  static constexpr auto fields() {
    return contract(input("x", &Op::x, TypeClass::activation, "T,C"),
                    input("weight", &Op::weight, TypeClass::parameter, "C,W"),
                    pooled(may_be_empty(updated("state", &Op::state, TypeClass::f32, "W-1,C"))),
                    output("out", &Op::out, TypeClass::activation, "T,C"), sequence_inputs<Op>(),
                    optional_input("save_at", &Op::save_at, TypeClass::i32, "N"),
                    may_be_absent(may_be_empty(updated("saved", &Op::saved, TypeClass::f32, "N,W-1,C"))));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
