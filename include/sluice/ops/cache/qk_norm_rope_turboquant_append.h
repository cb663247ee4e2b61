#pragma once

#include "sluice/ops/cache/turboquant_encode.h"
#include "sluice/ops/field.h"

namespace sluice::ops {

// The same for a packed cache: qk_norm_rope, then turboquant_append, as one op.
struct QkNormRopeTurboquantAppend {
  static constexpr std::string_view kName = "qk_norm_rope_turboquant_append";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula =
      "q, k = qk_norm_rope(q, k), then k and v of token i are encoded into slot (start+i) mod S";

  View q;
  View k;
  ConstView v;
  ConstView q_weight;
  ConstView k_weight;
  ConstView inv_freq;
  ConstView positions;
  ConstView signs;
  View k_codes;
  View v_codes;
  View k_norms;
  View v_norms;
  ConstView seq_starts;
  ConstView slots;
  ConstView page_table = {};
  double eps = 1e-6;
  double mscale = 1;
  std::int64_t k_bits = 4;
  std::int64_t v_bits = 4;
  TurboquantNorm norm = TurboquantNorm::plain;  // plain: |x|; matched: |x|*sqrt(D)/|levels|
  SequenceValue start;

  template <class Op>
  static constexpr auto fields() {
    return contract(updated("q", &Op::q, TypeClass::activation, "T,H,D"),
                    updated("k", &Op::k, TypeClass::activation, "T,KH,D"),
                    input("v", &Op::v, TypeClass::activation, "T,KH,D"),
                    input("q_weight", &Op::q_weight, TypeClass::parameter, "D"),
                    input("k_weight", &Op::k_weight, TypeClass::parameter, "D"),
                    input("inv_freq", &Op::inv_freq, TypeClass::f32, "M"),
                    input("positions", &Op::positions, TypeClass::i32, "T"),
                    optional_input("signs", &Op::signs, TypeClass::u8, "D/8"),
                    pooled(updated("k_codes", &Op::k_codes, TypeClass::u8, "KH,S,D*k_bits/8")),
                    pooled(updated("v_codes", &Op::v_codes, TypeClass::u8, "KH,S,D*v_bits/8")),
                    pooled(updated("k_norms", &Op::k_norms, TypeClass::f32, "KH,S")),
                    pooled(updated("v_norms", &Op::v_norms, TypeClass::f32, "KH,S")),
                    optional_input("seq_starts", &Op::seq_starts, TypeClass::i32, "B1"),
                    optional_input("slots", &Op::slots, TypeClass::i32, "B"), page_table_input<Op>(),
                    attribute("eps", &Op::eps, "added to the mean square"),
                    optional_attribute("mscale", &Op::mscale, "factor on cos and sin"),
                    attribute("k_bits", &Op::k_bits, "2, 3, 4, 5, 6, 8, or 16: BF16 numbers"),
                    attribute("v_bits", &Op::v_bits, "2, 3, 4, 5, 6, 8, or 16: BF16 numbers"),
                    optional_attribute("norm", &Op::norm, "plain: |x|; matched: |x|*sqrt(D)/|levels|"),
                    attribute("start", &Op::start, "tokens appended before"));
  }
  void check_attributes() const;
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
