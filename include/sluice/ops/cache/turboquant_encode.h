#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

enum class TurboquantNorm : std::uint8_t { plain, matched };
constexpr std::array<std::string_view, 2> names_of(TurboquantNorm) {
  return {"plain", "matched"};
}

// Rotates and quantises vectors to Lloyd-Max codes and a norm.
struct TurboquantEncode {
  static constexpr std::string_view kName = "turboquant_encode";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula =
      "rotate, then the nearest level of each coordinate times sqrt(D)/|x| (on a boundary the lower "
      "code), packed as one little-endian bit stream per vector";

  ConstView x;
  ConstView signs;
  View codes;
  View norms;
  std::int64_t bits = 4;
  TurboquantNorm norm = TurboquantNorm::plain;  // plain: |x|; matched: |x|*sqrt(D)/|levels|

  template <class Op>
  static constexpr auto fields() {
    return contract(input("x", &Op::x, TypeClass::activation, "T,H,D"),
                    optional_input("signs", &Op::signs, TypeClass::u8, "D/8"),
                    output("codes", &Op::codes, TypeClass::u8, "H,T,D*bits/8"),
                    output("norms", &Op::norms, TypeClass::f32, "H,T"),
                    attribute("bits", &Op::bits, "2, 3, 4, 5, 6 or 8"),
                    optional_attribute("norm", &Op::norm, "plain: |x|; matched: |x|*sqrt(D)/|levels|"));
  }
  void check_attributes() const;
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
