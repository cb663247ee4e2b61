#pragma once

#include "sluice/ops/cache/turboquant_encode.h"
#include "sluice/ops/field.h"

namespace sluice::ops {

// Encodes new keys and values into the packed cache, a ring of S slots.
struct TurboquantAppend {
  static constexpr std::string_view kName = "turboquant_append";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula = "token i is encoded into slot (start+i) mod S";

  ConstView k;
  ConstView v;
  ConstView signs;
  View k_codes;
  View v_codes;
  View k_norms;
  View v_norms;
  ConstView seq_starts;
  ConstView slots;
  ConstView page_table = {};
  std::int64_t k_bits = 4;
  std::int64_t v_bits = 4;
  TurboquantNorm norm = TurboquantNorm::plain;  // plain: |x|; matched: |x|*sqrt(D)/|levels|
  SequenceValue start;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("k", &Op::k, TypeClass::activation, "T,KH,D"),
                    input("v", &Op::v, TypeClass::activation, "T,KH,D"), caches<Op>(),
                    paged_sequence_inputs<Op>(), attributes<Op>());
  }

  // Those of qk_norm_rope_turboquant_append, too.
  template <class Op>
  static constexpr auto caches() {
    return contract(optional_input("signs", &Op::signs, TypeClass::u8, "D/8"),
                    pooled(updated("k_codes", &Op::k_codes, TypeClass::u8, "KH,S,D*k_bits/8")),
                    pooled(updated("v_codes", &Op::v_codes, TypeClass::u8, "KH,S,D*v_bits/8")),
                    pooled(updated("k_norms", &Op::k_norms, TypeClass::f32, "KH,S")),
                    pooled(updated("v_norms", &Op::v_norms, TypeClass::f32, "KH,S")));
  }
  template <class Op>
  static constexpr auto attributes() {
    return contract(attribute("k_bits", &Op::k_bits, "2, 3, 4, 5, 6, 8, or 16: BF16 numbers"),
                    attribute("v_bits", &Op::v_bits, "2, 3, 4, 5, 6, 8, or 16: BF16 numbers"),
                    optional_attribute("norm", &Op::norm, "plain: |x|; matched: |x|*sqrt(D)/|levels|"),
                    attribute("start", &Op::start, "tokens appended before"));
  }

  void check_attributes() const;
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
