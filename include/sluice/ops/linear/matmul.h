#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// The product with one weight matrix.
struct Matmul {
  static constexpr std::string_view kName = "matmul";
  static constexpr std::string_view kFamily = "Linear algebra";
  static constexpr std::string_view kFormula = "out = x wT";

  ConstView x;
  Weight w;
  View out;  // of x's type or F32

  template <class Op>
  static constexpr auto fields() {
    return contract(input("x", &Op::x, TypeClass::activation, "T,K"), matrix("w", &Op::w, "N,K"),
                    or_f32(output("out", &Op::out, TypeClass::activation, "T,N")));
  }
};

}  // namespace sluice::ops
