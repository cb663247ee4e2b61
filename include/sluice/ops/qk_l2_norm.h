#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Unit-length queries and keys of the delta rule, per head.
struct QkL2Norm {
  static constexpr std::string_view kName = "qk_l2_norm";
  static constexpr std::string_view kFamily = "Norms and positions";
  static constexpr std::string_view kFormula =
      "x = x * rsqrt(sum(x^2) + eps) * scale, with q_scale for q and k_scale for k";

  View q;              // [T,H,D], in place
  View k;              // [T,H,D], in place
  double eps = 1e-6;   // added to the sum of squares
  double q_scale = 1;  // factor on q
  double k_scale = 1;  // factor on k

  static constexpr auto fields() {
    return std::tuple(updated("q", &QkL2Norm::q, TypeClass::activation, "T,H,D"),
                      updated("k", &QkL2Norm::k, TypeClass::activation, "T,H,D"),
                      attribute("eps", &QkL2Norm::eps, "added to the sum of squares"),
                      attribute("q_scale", &QkL2Norm::q_scale, "factor on q"),
                      attribute("k_scale", &QkL2Norm::k_scale, "factor on k"));
  }
  // Limits that shapes cannot express; reads the field contents only where they are in host memory.
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
