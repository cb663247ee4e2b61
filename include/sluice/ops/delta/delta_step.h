#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Token mixing of Gated DeltaNet between its projections, for decode: causal_conv1d, qk_l2_norm, delta_gates,
// delta_rule in its recurrent form and gated_rms_norm as one op, without rounding in between.
struct DeltaStep {
  static constexpr std::string_view kName = "delta_step";
  static constexpr std::string_view kFamily = "Gated delta rule";
  static constexpr std::string_view kFormula =
      "q, k, v = causal_conv1d(qkv), q and k [Hk,Dk] of length Dk^-1/2 and 1; g, beta = delta_gates(a, b); "
      "out = gated_rms_norm(delta_rule(q, k, v, g, beta), z)";

  ConstView qkv;  // C = 2*Hk*Dk + Hv*Dv
  ConstView z;
  ConstView a;
  ConstView b;
  ConstView conv_weight;
  ConstView A_log;
  ConstView dt_bias;
  ConstView norm_weight;
  View conv_state;
  View state;
  View out;
  ConstView seq_starts;
  ConstView slots;
  double qk_eps = 1e-6;
  double eps = 1e-6;

  std::int64_t key_heads() const {
    const int last = state.rank() - 1;
    return (qkv.dim(1) - state.dim(last - 2) * state.dim(last - 1)) / (2 * state.dim(last));
  }

  template <class Op>
  static constexpr auto fields() {
    return contract(input("qkv", &Op::qkv, TypeClass::activation, "T,C"),
                    input("z", &Op::z, TypeClass::activation, "T,Hv,Dv"),
                    input("a", &Op::a, TypeClass::activation, "T,Hv"),
                    input("b", &Op::b, TypeClass::activation, "T,Hv"),
                    input("conv_weight", &Op::conv_weight, TypeClass::parameter, "C,W"),
                    input("A_log", &Op::A_log, TypeClass::parameter, "Hv"),
                    input("dt_bias", &Op::dt_bias, TypeClass::parameter, "Hv"),
                    input("norm_weight", &Op::norm_weight, TypeClass::parameter, "Dv"),
                    pooled(may_be_empty(updated("conv_state", &Op::conv_state, TypeClass::f32, "W-1,C"))),
                    pooled(updated("state", &Op::state, TypeClass::f32, "Hv,Dv,Dk")),
                    output("out", &Op::out, TypeClass::activation, "T,Hv,Dv"), sequence_inputs<Op>(),
                    attribute("qk_eps", &Op::qk_eps, "added to the sum of squares of a query or key"),
                    attribute("eps", &Op::eps, "added to the mean square of an output head"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
