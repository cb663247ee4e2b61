#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Unit-length queries and keys of the delta rule, per head.
struct QkL2Norm {
  static constexpr std::string_view kName = "qk_l2_norm";
  static constexpr std::string_view kFamily = "Norms and positions";
  static constexpr std::string_view kFormula =
      "x = x * rsqrt(sum(x^2) + eps) * scale, with q_scale for q and k_scale for k";

  View q;
  View k;
  double eps = 1e-6;
  double q_scale = 1;
  double k_scale = 1;

  template <class Op>
  static constexpr auto fields() {
    return contract(updated("q", &Op::q, TypeClass::activation, "T,H,D"),
                    updated("k", &Op::k, TypeClass::activation, "T,H,D"),
                    attribute("eps", &Op::eps, "added to the sum of squares"),
                    attribute("q_scale", &Op::q_scale, "factor on q"),
                    attribute("k_scale", &Op::k_scale, "factor on k"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
