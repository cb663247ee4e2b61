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

  static constexpr auto fields() {
    return std::tuple(input("x", &GatedRmsNorm::x, TypeClass::activation, "T,H,D"),
                      input("z", &GatedRmsNorm::z, TypeClass::activation, "T,H,D"),
                      input("weight", &GatedRmsNorm::weight, TypeClass::parameter, "D"),
                      output_over("out", &GatedRmsNorm::out, TypeClass::activation, "T,H,D"),
                      attribute("eps", &GatedRmsNorm::eps, "added to the mean square"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
