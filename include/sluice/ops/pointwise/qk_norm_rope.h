#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Norm and rotary position of queries and keys, per head, in place.
struct QkNormRope {
  static constexpr std::string_view kName = "qk_norm_rope";
  static constexpr std::string_view kFamily = "Norms and positions";
  static constexpr std::string_view kFormula =
      "x = rope(rms_norm(x) * weight) for q with q_weight and for k with k_weight; the pairs of rope are (i, "
      "i+R/2) of the first R = 2*M channels";

  View q;
  View k;
  ConstView q_weight;
  ConstView k_weight;
  ConstView inv_freq;
  ConstView positions;
  double eps = 1e-6;
  double mscale = 1;

  static constexpr auto fields() {
    return std::tuple(updated("q", &QkNormRope::q, TypeClass::activation, "T,H,D"),
                      updated("k", &QkNormRope::k, TypeClass::activation, "T,KH,D"),
                      input("q_weight", &QkNormRope::q_weight, TypeClass::parameter, "D"),
                      input("k_weight", &QkNormRope::k_weight, TypeClass::parameter, "D"),
                      input("inv_freq", &QkNormRope::inv_freq, TypeClass::f32, "M"),
                      input("positions", &QkNormRope::positions, TypeClass::i32, "T"),
                      attribute("eps", &QkNormRope::eps, "added to the mean square"),
                      optional_attribute("mscale", &QkNormRope::mscale, "factor on cos and sin"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
