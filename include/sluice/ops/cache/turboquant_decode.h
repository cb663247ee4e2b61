#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Decodes Lloyd-Max codes and norms to vectors.
struct TurboquantDecode {
  static constexpr std::string_view kName = "turboquant_decode";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula =
      "level[code] * norm/sqrt(D), then the inverse rotation unless rotated";

  ConstView codes;
  ConstView norms;
  ConstView signs;
  View out;
  std::int64_t bits = 4;
  bool rotated = false;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("codes", &Op::codes, TypeClass::u8, "H,T,D*bits/8"),
                    input("norms", &Op::norms, TypeClass::f32, "H,T"),
                    optional_input("signs", &Op::signs, TypeClass::u8, "D/8"),
                    output("out", &Op::out, TypeClass::activation, "T,H,D"),
                    attribute("bits", &Op::bits, "2, 3, 4, 5, 6 or 8"),
                    optional_attribute("rotated", &Op::rotated, "leave the output in the rotated basis"));
  }
  // A dimension that follows from no input alone.
  void derive(Dims& dims) const {
    if (codes.rank() == 3 && bits > 0) dims["D"] = codes.dim(2) * 8 / bits;
  }
  void check_attributes() const;
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
