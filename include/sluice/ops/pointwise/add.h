#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Element-wise sum.
struct Add {
  static constexpr std::string_view kName = "add";
  static constexpr std::string_view kFamily = "Linear algebra";
  static constexpr std::string_view kFormula = "out = a + b";

  ConstView a;
  ConstView b;
  View out;

  static constexpr auto fields() {
    return std::tuple(input("a", &Add::a, TypeClass::activation, "*"),
                      input("b", &Add::b, TypeClass::activation, "*"),
                      output_over("out", &Add::out, TypeClass::activation, "*"));
  }
};

}  // namespace sluice::ops
