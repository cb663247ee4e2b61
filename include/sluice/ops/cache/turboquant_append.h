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

  static constexpr auto fields() {
    return std::tuple(
        input("k", &TurboquantAppend::k, TypeClass::activation, "T,KH,D"),
        input("v", &TurboquantAppend::v, TypeClass::activation, "T,KH,D"),
        optional_input("signs", &TurboquantAppend::signs, TypeClass::u8, "D/8"),
        pooled(updated("k_codes", &TurboquantAppend::k_codes, TypeClass::u8, "KH,S,D*k_bits/8")),
        pooled(updated("v_codes", &TurboquantAppend::v_codes, TypeClass::u8, "KH,S,D*v_bits/8")),
        pooled(updated("k_norms", &TurboquantAppend::k_norms, TypeClass::f32, "KH,S")),
        pooled(updated("v_norms", &TurboquantAppend::v_norms, TypeClass::f32, "KH,S")),
        optional_input("seq_starts", &TurboquantAppend::seq_starts, TypeClass::i32, "B1"),
        optional_input("slots", &TurboquantAppend::slots, TypeClass::i32, "B"),
        page_table_input<TurboquantAppend>(),
        attribute("k_bits", &TurboquantAppend::k_bits, "2, 3, 4, 5, 6, 8, or 16: BF16 numbers"),
        attribute("v_bits", &TurboquantAppend::v_bits, "2, 3, 4, 5, 6, 8, or 16: BF16 numbers"),
        optional_attribute("norm", &TurboquantAppend::norm, "plain: |x|; matched: |x|*sqrt(D)/|levels|"),
        attribute("start", &TurboquantAppend::start, "tokens appended before"));
  }
  void check_attributes() const;
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
