#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Separates the query and the gate that one projection produced, per head.
struct SplitQGate {
  static constexpr std::string_view kName = "split_q_gate";
  static constexpr std::string_view kFamily = "Norms and positions";
  static constexpr std::string_view kFormula = "q = x[..,0:D], gate = x[..,D:2D]";

  ConstView x;
  View q;
  View gate;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("x", &Op::x, TypeClass::activation, "T,H,2*D"),
                    output("q", &Op::q, TypeClass::activation, "T,H,D"),
                    output("gate", &Op::gate, TypeClass::activation, "T,H,D"));
  }
  // A dimension that follows from no input alone.
  void derive(Dims& dims) const {
    if (x.rank() == 3 && x.dim(2) % 2 == 0) dims["D"] = x.dim(2) / 2;
  }
};

}  // namespace sluice::ops
