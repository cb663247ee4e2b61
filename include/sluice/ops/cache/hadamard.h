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

  static constexpr auto fields() {
    return std::tuple(input("x", &Hadamard::x, TypeClass::activation, "..,D"),
                      optional_input("signs", &Hadamard::signs, TypeClass::u8, "D/8"),
                      output_over("out", &Hadamard::out, TypeClass::activation, "..,D"),
                      optional_attribute("inverse", &Hadamard::inverse, "apply the inverse rotation"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
