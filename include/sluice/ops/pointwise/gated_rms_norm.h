#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// The output norm of Gated DeltaNet, per head.
struct GatedRmsNorm {
  static constexpr std::string_view kName = "gated_rms_norm";
  static constexpr std::string_view kFamily = "Norms and positions";
  static constexpr std::string_view kFormula = "out = rms_norm(x) * weight * silu(z)";

  ConstView x;
  ConstView z;
  ConstView weight;
  View out;
  double eps = 1e-6;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("x", &Op::x, TypeClass::activation, "T,H,D"),
                    input("z", &Op::z, TypeClass::activation, "T,H,D"),
                    input("weight", &Op::weight, TypeClass::parameter, "D"),
                    output_over("out", &Op::out, TypeClass::activation, "T,H,D"),
                    attribute("eps", &Op::eps, "added to the mean square"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
