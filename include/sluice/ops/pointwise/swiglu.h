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

  static constexpr auto fields() {
    return std::tuple(input("gate", &Swiglu::gate, TypeClass::activation, "*"),
                      input("up", &Swiglu::up, TypeClass::activation, "*"),
                      output_over("out", &Swiglu::out, TypeClass::activation, "*"));
  }
};

}  // namespace sluice::ops
