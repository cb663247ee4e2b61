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

  template <class Op>
  static constexpr auto fields() {
    return contract(input("a", &Op::a, TypeClass::activation, "*"),
                    input("b", &Op::b, TypeClass::activation, "*"),
                    output_over("out", &Op::out, TypeClass::activation, "*"));
  }
};

}  // namespace sluice::ops
