#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Residual addition and the norm that follows it; the norm reads the residual as stored, so that fused equals
// unfused.
struct AddRmsNorm {
  static constexpr std::string_view kName = "add_rms_norm";
  static constexpr std::string_view kFamily = "Norms and positions";
  static constexpr std::string_view kFormula = "residual += delta; out = rms_norm(residual) * weight";

  View residual;
  ConstView delta;
  ConstView weight;
  View out;
  double eps = 1e-6;

  template <class Op>
  static constexpr auto fields() {
    return contract(updated("residual", &Op::residual, TypeClass::activation, "T,D"),
                    input("delta", &Op::delta, TypeClass::activation, "T,D"),
                    input("weight", &Op::weight, TypeClass::parameter, "D"),
                    output_over("out", &Op::out, TypeClass::activation, "T,D"),
                    attribute("eps", &Op::eps, "added to the mean square"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
