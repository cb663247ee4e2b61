#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Prepares queries, keys and values for attention: qk_norm_rope, then kv_append, as one op.
struct QkNormRopeAppend {
  static constexpr std::string_view kName = "qk_norm_rope_append";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula =
      "q, k = qk_norm_rope(q, k), then k_cache[start+i] = k[i], v_cache[start+i] = v[i]";

  View q;
  View k;
  ConstView v;
  ConstView q_weight;
  ConstView k_weight;
  ConstView inv_freq;
  ConstView positions;
  View k_cache;
  View v_cache;
  ConstView seq_starts;
  ConstView slots;
  ConstView page_table = {};
  double eps = 1e-6;
  double mscale = 1;
  SequenceValue start;

  template <class Op>
  static constexpr auto fields() {
    return contract(updated("q", &Op::q, TypeClass::activation, "T,H,D"),
                    updated("k", &Op::k, TypeClass::activation, "T,KH,D"),
                    input("v", &Op::v, TypeClass::activation, "T,KH,Dv"),
                    input("q_weight", &Op::q_weight, TypeClass::parameter, "D"),
                    input("k_weight", &Op::k_weight, TypeClass::parameter, "D"),
                    input("inv_freq", &Op::inv_freq, TypeClass::f32, "M"),
                    input("positions", &Op::positions, TypeClass::i32, "T"),
                    pooled(updated("k_cache", &Op::k_cache, TypeClass::cache, "S,KH,D")),
                    pooled(updated("v_cache", &Op::v_cache, TypeClass::cache, "S,KH,Dv")),
                    optional_input("seq_starts", &Op::seq_starts, TypeClass::i32, "B1"),
                    optional_input("slots", &Op::slots, TypeClass::i32, "B"), page_table_input<Op>(),
                    attribute("eps", &Op::eps, "added to the mean square"),
                    optional_attribute("mscale", &Op::mscale, "factor on cos and sin"),
                    attribute("start", &Op::start, "rows already in the cache"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
