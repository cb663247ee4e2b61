#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Causal attention computed from the packed cache, which already holds the call's own rows. A call may also
// pass these rows as they were before encoding: a prompt then reads the rows of its own block of 64 positions
// unquantised, however it is split into calls (fresh_rows.h).
struct TurboquantAttention {
  static constexpr std::string_view kName = "turboquant_attention";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula =
      "physical slot p is logical row (p-ring_start) mod S; query i sees logical rows 0..length-T+i, only "
      "the last `window` of them if set, from codes, but those of the call from k_new and v_new, if given, "
      "where row / 64 is that of its own row; out = softmax(scale * q kT) v";

  ConstView q;
  ConstView k_codes;
  ConstView v_codes;
  ConstView k_norms;
  ConstView v_norms;
  ConstView signs;
  ConstView k_new;  // the keys of the call's tokens before encoding
  ConstView v_new;
  View out;
  ConstView seq_starts;
  ConstView slots;
  ConstView page_table = {};
  std::int64_t k_bits = 4;
  std::int64_t v_bits = 4;
  SequenceValue length;
  SequenceValue start;
  SequenceValue ring_start;
  std::int64_t window = 0;
  double scale = 1;
  bool rotated = false;

  template <class Op>
  static constexpr auto fields() {
    return contract(
        input("q", &Op::q, TypeClass::activation, "T,H,D"),
        pooled(input("k_codes", &Op::k_codes, TypeClass::u8, "KH,S,D*k_bits/8")),
        pooled(input("v_codes", &Op::v_codes, TypeClass::u8, "KH,S,D*v_bits/8")),
        pooled(input("k_norms", &Op::k_norms, TypeClass::f32, "KH,S")),
        pooled(input("v_norms", &Op::v_norms, TypeClass::f32, "KH,S")),
        optional_input("signs", &Op::signs, TypeClass::u8, "D/8"),
        optional_input("k_new", &Op::k_new, TypeClass::activation, "T,KH,D"),
        optional_input("v_new", &Op::v_new, TypeClass::activation, "T,KH,D"),
        output("out", &Op::out, TypeClass::activation, "T,H,D"), paged_sequence_inputs<Op>(),
        attribute("k_bits", &Op::k_bits, "2, 3, 4, 5, 6, 8, or 16: BF16 numbers"),
        attribute("v_bits", &Op::v_bits, "2, 3, 4, 5, 6, 8, or 16: BF16 numbers"),
        optional_attribute("length", &Op::length,
                           "rows in the cache, the queries' own included; 0: start + T"),
        optional_attribute("start", &Op::start, "rows before the queries' own, where no length is given"),
        optional_attribute("ring_start", &Op::ring_start,
                           "slot of the oldest row; not 0 only when length = S"),
        optional_attribute("window", &Op::window, "rows a query sees, its own included; 0: all"),
        attribute("scale", &Op::scale, "factor on the scores"),
        optional_attribute("rotated", &Op::rotated, "q, k_new and v_new come rotated and out stays rotated"));
  }
  void check_attributes() const;
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
