#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Qwen's router; equal logits go to the lower index, NaN logits are an error.
struct RouteSoftmax {
  static constexpr std::string_view kName = "route_softmax";
  static constexpr std::string_view kFamily = "Mixture of experts";
  static constexpr std::string_view kFormula =
      "softmax over all E, the k largest in falling order, optionally divided by their sum";

  ConstView logits;
  View experts;
  View weights;
  std::int64_t k = 1;
  bool normalize = false;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("logits", &Op::logits, TypeClass::activation, "T,E"),
                    output("experts", &Op::experts, TypeClass::i32, "T,k"),
                    output("weights", &Op::weights, TypeClass::f32, "T,k"),
                    attribute("k", &Op::k, "experts a token chooses"),
                    optional_attribute("normalize", &Op::normalize, "divide the weights by their sum"));
  }
  void check_attributes() const;
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
