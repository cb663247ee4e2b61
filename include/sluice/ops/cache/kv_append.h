#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Writes the keys and values of new tokens into the cache.
struct KvAppend {
  static constexpr std::string_view kName = "kv_append";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula = "k_cache[start+i] = k[i], v_cache[start+i] = v[i]";

  ConstView k;
  ConstView v;
  View k_cache;
  View v_cache;
  ConstView seq_starts;
  ConstView slots;
  ConstView page_table = {};
  SequenceValue start;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("k", &Op::k, TypeClass::activation, "T,KH,D"),
                    input("v", &Op::v, TypeClass::activation, "T,KH,Dv"), caches<Op>(),
                    paged_sequence_inputs<Op>(), attribute("start", &Op::start, "rows already in the cache"));
  }

  // Those of qk_norm_rope_append, too.
  template <class Op>
  static constexpr auto caches() {
    return contract(pooled(updated("k_cache", &Op::k_cache, TypeClass::cache, "S,KH,D")),
                    pooled(updated("v_cache", &Op::v_cache, TypeClass::cache, "S,KH,Dv")));
  }

  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
