#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Writes the keys and values of new tokens into the cache.
struct KvAppend {
  static constexpr std::string_view kName = "kv_append";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula = "k_cache[start+i] = k[i], v_cache[start+i] = v[i]";

  ConstView k;                // [T,KH,D]
  ConstView v;                // [T,KH,Dv]
  View k_cache;               // [S,KH,D], in place, pooled
  View v_cache;               // [S,KH,Dv], in place, pooled
  ConstView seq_starts;       // I32 [B+1], optional: cuts the tokens into B sequences
  ConstView slots;            // I32 [B], optional: the pool row of each sequence, default 0..B-1
  ConstView page_table = {};  // I32 [slots,pages] or [pages], optional: the pages of each sequence
  SequenceValue start;        // rows already in the cache

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
  // Limits that shapes cannot express; reads the field contents only where they are in host memory.
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
