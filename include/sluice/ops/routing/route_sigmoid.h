#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// DeepSeek's router with expert groups and a selection bias.
struct RouteSigmoid {
  static constexpr std::string_view kName = "route_sigmoid";
  static constexpr std::string_view kFamily = "Mixture of experts";
  static constexpr std::string_view kFormula =
      "s = sigmoid(logits); a group's score is the sum of its two largest s+bias; the k largest s+bias of "
      "the top groups, ties to the lower index; weights are s, divided by (sum + 1e-20) if normalize, "
      "times scale";

  ConstView logits;
  ConstView bias;
  View experts;
  View weights;
  std::int64_t k = 1;
  std::int64_t groups = 1;
  std::int64_t top_groups = 1;
  double scale = 1;
  bool normalize = false;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("logits", &Op::logits, TypeClass::activation, "T,E"),
                    input("bias", &Op::bias, TypeClass::parameter, "E"),
                    output("experts", &Op::experts, TypeClass::i32, "T,k"),
                    output("weights", &Op::weights, TypeClass::f32, "T,k"),
                    attribute("k", &Op::k, "experts a token chooses"),
                    optional_attribute("groups", &Op::groups, "expert groups"),
                    optional_attribute("top_groups", &Op::top_groups, "groups a token may choose from"),
                    optional_attribute("scale", &Op::scale, "factor on the weights"),
                    optional_attribute("normalize", &Op::normalize, "divide the weights by their sum"));
  }
  void check_attributes() const;
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
