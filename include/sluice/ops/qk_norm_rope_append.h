#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// What attention does to queries, keys and values before it looks at the cache: qk_norm_rope, then kv_append,
// as one op.
struct QkNormRopeAppend {
  static constexpr std::string_view kName = "qk_norm_rope_append";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula =
      "q, k = qk_norm_rope(q, k), then k_cache[start+i] = k[i], v_cache[start+i] = v[i]";

  View q;                     // [T,H,D], in place
  View k;                     // [T,KH,D], in place
  ConstView v;                // [T,KH,Dv]
  ConstView q_weight;         // [D]
  ConstView k_weight;         // [D]
  ConstView inv_freq;         // [M]
  ConstView positions;        // [T]
  View k_cache;               // [S,KH,D], in place, pooled
  View v_cache;               // [S,KH,Dv], in place, pooled
  ConstView seq_starts;       // I32 [B+1], optional: cuts the tokens into B sequences
  ConstView slots;            // I32 [B], optional: the pool row of each sequence, default 0..B-1
  ConstView page_table = {};  // I32 [slots,pages] or [pages], optional: the pages of each sequence
  double eps = 1e-6;          // added to the mean square
  double mscale = 1;          // factor on cos and sin
  SequenceValue start;        // rows already in the cache

  static constexpr auto fields() {
    return std::tuple(updated("q", &QkNormRopeAppend::q, TypeClass::activation, "T,H,D"),
                      updated("k", &QkNormRopeAppend::k, TypeClass::activation, "T,KH,D"),
                      input("v", &QkNormRopeAppend::v, TypeClass::activation, "T,KH,Dv"),
                      input("q_weight", &QkNormRopeAppend::q_weight, TypeClass::parameter, "D"),
                      input("k_weight", &QkNormRopeAppend::k_weight, TypeClass::parameter, "D"),
                      input("inv_freq", &QkNormRopeAppend::inv_freq, TypeClass::f32, "M"),
                      input("positions", &QkNormRopeAppend::positions, TypeClass::i32, "T"),
                      pooled(updated("k_cache", &QkNormRopeAppend::k_cache, TypeClass::cache, "S,KH,D")),
                      pooled(updated("v_cache", &QkNormRopeAppend::v_cache, TypeClass::cache, "S,KH,Dv")),
                      optional_input("seq_starts", &QkNormRopeAppend::seq_starts, TypeClass::i32, "B1"),
                      optional_input("slots", &QkNormRopeAppend::slots, TypeClass::i32, "B"),
                      page_table_input<QkNormRopeAppend>(),
                      attribute("eps", &QkNormRopeAppend::eps, "added to the mean square"),
                      optional_attribute("mscale", &QkNormRopeAppend::mscale, "factor on cos and sin"),
                      attribute("start", &QkNormRopeAppend::start, "rows already in the cache"));
  }
  // Limits that shapes cannot express; reads the field contents only where they are in host memory.
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
