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

  static constexpr auto fields() {
    return std::tuple(input("k", &KvAppend::k, TypeClass::activation, "T,KH,D"),
                      input("v", &KvAppend::v, TypeClass::activation, "T,KH,Dv"),
                      pooled(updated("k_cache", &KvAppend::k_cache, TypeClass::cache, "S,KH,D")),
                      pooled(updated("v_cache", &KvAppend::v_cache, TypeClass::cache, "S,KH,Dv")),
                      optional_input("seq_starts", &KvAppend::seq_starts, TypeClass::i32, "B1"),
                      optional_input("slots", &KvAppend::slots, TypeClass::i32, "B"),
                      page_table_input<KvAppend>(),
                      attribute("start", &KvAppend::start, "rows already in the cache"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
