#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

enum class Pairing : std::uint8_t { half, interleaved };
constexpr std::array<std::string_view, 2> names_of(Pairing) {
  return {"half", "interleaved"};
}

// Rotary position embedding of the first R = 2*M channels, in place.
struct Rope {
  static constexpr std::string_view kName = "rope";
  static constexpr std::string_view kFamily = "Norms and positions";
  static constexpr std::string_view kFormula =
      "each pair is rotated by positions[t] * inv_freq[i]; cos and sin are multiplied by mscale; the "
      "pairs are (i, i+R/2) or (2i, 2i+1)";

  View x;
  ConstView inv_freq;
  ConstView positions;
  double mscale = 1;
  Pairing pairing = Pairing::half;  // half: (i, i+R/2); interleaved: (2i, 2i+1)

  template <class Op>
  static constexpr auto fields() {
    return contract(updated("x", &Op::x, TypeClass::activation, "T,H,D"),
                    input("inv_freq", &Op::inv_freq, TypeClass::f32, "M"),
                    input("positions", &Op::positions, TypeClass::i32, "T"),
                    optional_attribute("mscale", &Op::mscale, "factor on cos and sin"),
                    optional_attribute("pairing", &Op::pairing, "half: (i, i+R/2); interleaved: (2i, 2i+1)"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
