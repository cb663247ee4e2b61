#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Causal attention straight from the packed cache, which holds the call's own rows already. These may come
// beside it as they were before encoding: a prompt then sees the rows of its own block of 64 positions
// unquantised, whatever calls it is cut into (fresh_rows.h).
struct TurboquantAttention {
  static constexpr std::string_view kName = "turboquant_attention";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula =
      "physical slot p is logical row (p-ring_start) mod S; query i sees logical rows 0..length-T+i, only "
      "the last `window` of them if set, from codes, but those of the call from k_new and v_new, if given, "
      "where row / 64 is that of its own row; out = softmax(scale * q kT) v";

  ConstView q;                // [T,H,D]
  ConstView k_codes;          // [KH,S,D*k_bits/8], pooled
  ConstView v_codes;          // [KH,S,D*v_bits/8], pooled
  ConstView k_norms;          // [KH,S], pooled
  ConstView v_norms;          // [KH,S], pooled
  ConstView signs;            // [D/8], or absent
  ConstView k_new;            // [T,KH,D], or absent: the keys of the call's tokens before encoding
  ConstView v_new;            // [T,KH,D], or absent
  View out;                   // [T,H,D]
  ConstView seq_starts;       // I32 [B+1], optional: cuts the tokens into B sequences
  ConstView slots;            // I32 [B], optional: the pool row of each sequence, default 0..B-1
  ConstView page_table = {};  // I32 [slots,pages] or [pages], optional: the pages of each sequence
  std::int64_t k_bits = 4;    // 2, 3, 4, 5, 6, 8, or 16: BF16 numbers
  std::int64_t v_bits = 4;    // the same
  SequenceValue length;       // rows in the cache, the queries' own included; 0: start + T
  SequenceValue start;        // rows before the queries' own, where no length is given
  SequenceValue ring_start;   // slot of the oldest row; not 0 only when length = S
  std::int64_t window = 0;    // rows a query sees, its own included; 0: all
  double scale = 1;           // factor on the scores
  bool rotated = false;       // q, k_new and v_new come rotated and out stays rotated

  static constexpr auto fields() {
    return std::tuple(
        input("q", &TurboquantAttention::q, TypeClass::activation, "T,H,D"),
        pooled(input("k_codes", &TurboquantAttention::k_codes, TypeClass::u8, "KH,S,D*k_bits/8")),
        pooled(input("v_codes", &TurboquantAttention::v_codes, TypeClass::u8, "KH,S,D*v_bits/8")),
        pooled(input("k_norms", &TurboquantAttention::k_norms, TypeClass::f32, "KH,S")),
        pooled(input("v_norms", &TurboquantAttention::v_norms, TypeClass::f32, "KH,S")),
        optional_input("signs", &TurboquantAttention::signs, TypeClass::u8, "D/8"),
        optional_input("k_new", &TurboquantAttention::k_new, TypeClass::activation, "T,KH,D"),
        optional_input("v_new", &TurboquantAttention::v_new, TypeClass::activation, "T,KH,D"),
        output("out", &TurboquantAttention::out, TypeClass::activation, "T,H,D"),
        optional_input("seq_starts", &TurboquantAttention::seq_starts, TypeClass::i32, "B1"),
        optional_input("slots", &TurboquantAttention::slots, TypeClass::i32, "B"),
        page_table_input<TurboquantAttention>(),
        attribute("k_bits", &TurboquantAttention::k_bits, "2, 3, 4, 5, 6, 8, or 16: BF16 numbers"),
        attribute("v_bits", &TurboquantAttention::v_bits, "2, 3, 4, 5, 6, 8, or 16: BF16 numbers"),
        optional_attribute("length", &TurboquantAttention::length,
                           "rows in the cache, the queries' own included; 0: start + T"),
        optional_attribute("start", &TurboquantAttention::start,
                           "rows before the queries' own, where no length is given"),
        optional_attribute("ring_start", &TurboquantAttention::ring_start,
                           "slot of the oldest row; not 0 only when length = S"),
        optional_attribute("window", &TurboquantAttention::window,
                           "rows a query sees, its own included; 0: all"),
        attribute("scale", &TurboquantAttention::scale, "factor on the scores"),
        optional_attribute("rotated", &TurboquantAttention::rotated,
                           "q, k_new and v_new come rotated and out stays rotated"));
  }
  // Limits of attributes that the shapes of fields follow from.
  void check_attributes() const;
  // Limits that shapes cannot express; reads the field contents only where they are in host memory.
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
