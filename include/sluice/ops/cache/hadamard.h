#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Orthonormal Walsh-Hadamard rotation with optional signs; bit i of byte j is coordinate 8j+i, 1 means -1.
struct Hadamard {
  static constexpr std::string_view kName = "hadamard";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula =
      "forward: H(signs * x)/sqrt(D); inverse: signs * (H x)/sqrt(D)";

  ConstView x;
  ConstView signs;
  View out;
  bool inverse = false;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("x", &Op::x, TypeClass::activation, "..,D"),
                    optional_input("signs", &Op::signs, TypeClass::u8, "D/8"),
                    output_over("out", &Op::out, TypeClass::activation, "..,D"),
                    optional_attribute("inverse", &Op::inverse, "apply the inverse rotation"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
