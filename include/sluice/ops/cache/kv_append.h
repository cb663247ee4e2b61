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
                    input("v", &Op::v, TypeClass::activation, "T,KH,Dv"),
                    pooled(updated("k_cache", &Op::k_cache, TypeClass::cache, "S,KH,D")),
                    pooled(updated("v_cache", &Op::v_cache, TypeClass::cache, "S,KH,Dv")),
                    optional_input("seq_starts", &Op::seq_starts, TypeClass::i32, "B1"),
                    optional_input("slots", &Op::slots, TypeClass::i32, "B"), page_table_input<Op>(),
                    attribute("start", &Op::start, "rows already in the cache"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
