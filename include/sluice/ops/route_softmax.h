#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Qwen's router; equal logits go to the lower index, NaN logits are an error.
struct RouteSoftmax {
  static constexpr std::string_view kName = "route_softmax";
  static constexpr std::string_view kFamily = "Mixture of experts";
  static constexpr std::string_view kFormula =
      "softmax over all E, the k largest in falling order, optionally divided by their sum";

  ConstView logits;        // [T,E]
  View experts;            // [T,k]
  View weights;            // [T,k]
  std::int64_t k = 1;      // experts a token chooses
  bool normalize = false;  // divide the weights by their sum

  static constexpr auto fields() {
    return std::tuple(
        input("logits", &RouteSoftmax::logits, TypeClass::activation, "T,E"),
        output("experts", &RouteSoftmax::experts, TypeClass::i32, "T,k"),
        output("weights", &RouteSoftmax::weights, TypeClass::f32, "T,k"),
        attribute("k", &RouteSoftmax::k, "experts a token chooses"),
        optional_attribute("normalize", &RouteSoftmax::normalize, "divide the weights by their sum"));
  }
  // Limits of attributes that the shapes of fields follow from.
  void check_attributes() const;
  // Limits that shapes cannot express; reads the field contents only where they are in host memory.
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
