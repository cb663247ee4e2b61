#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Element-wise SwiGLU.
struct Swiglu {
  static constexpr std::string_view kName = "swiglu";
  static constexpr std::string_view kFamily = "Linear algebra";
  static constexpr std::string_view kFormula = "out = silu(gate) * up";

  ConstView gate;
  ConstView up;
  View out;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("gate", &Op::gate, TypeClass::activation, "*"),
                    input("up", &Op::up, TypeClass::activation, "*"),
                    output_over("out", &Op::out, TypeClass::activation, "*"));
  }
};

}  // namespace sluice::ops
