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

  template <class Op>
  static constexpr auto fields() {
    return contract(updated("q", &Op::q, TypeClass::activation, "T,H,D"),
                    updated("k", &Op::k, TypeClass::activation, "T,KH,D"), parameters<Op>(),
                    attributes<Op>());
  }

  // Those of the ops that append to a cache what this one turned, too.
  template <class Op>
  static constexpr auto parameters() {
    return contract(input("q_weight", &Op::q_weight, TypeClass::parameter, "D"),
                    input("k_weight", &Op::k_weight, TypeClass::parameter, "D"),
                    input("inv_freq", &Op::inv_freq, TypeClass::f32, "M"),
                    input("positions", &Op::positions, TypeClass::i32, "T"));
  }
  template <class Op>
  static constexpr auto attributes() {
    return contract(attribute("eps", &Op::eps, "added to the mean square"),
                    optional_attribute("mscale", &Op::mscale, "factor on cos and sin"));
  }

  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
