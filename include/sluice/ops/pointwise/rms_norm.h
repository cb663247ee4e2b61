#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Root-mean-square norm over the last dimension.
struct RmsNorm {
  static constexpr std::string_view kName = "rms_norm";
  static constexpr std::string_view kFamily = "Norms and positions";
  static constexpr std::string_view kFormula = "out = x * rsqrt(mean(x^2) + eps) * weight";

  ConstView x;
  ConstView weight;
  View out;
  double eps = 1e-6;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("x", &Op::x, TypeClass::activation, "..,D"),
                    optional_input("weight", &Op::weight, TypeClass::parameter, "D"),
                    output_over("out", &Op::out, TypeClass::activation, "..,D"),
                    attribute("eps", &Op::eps, "added to the mean square"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
