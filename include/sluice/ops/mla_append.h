#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Writes the latents and rotary keys of new tokens into the cache.
struct MlaAppend {
  static constexpr std::string_view kName = "mla_append";
  static constexpr std::string_view kFamily = "Multi-head latent attention";
  static constexpr std::string_view kFormula =
      "latent_cache[start+i] = kv_latent[i], rope_cache[start+i] = k_pe[i]";

  ConstView kv_latent;        // [T,rank]
  ConstView k_pe;             // [T,rope]
  View latent_cache;          // [S,rank], in place, pooled
  View rope_cache;            // [S,rope], in place, pooled
  ConstView seq_starts;       // I32 [B+1], optional: cuts the tokens into B sequences
  ConstView slots;            // I32 [B], optional: the pool row of each sequence, default 0..B-1
  ConstView page_table = {};  // I32 [slots,pages] or [pages], optional: the pages of each sequence
  SequenceValue start;        // rows already in the cache

  static constexpr auto fields() {
    return std::tuple(input("kv_latent", &MlaAppend::kv_latent, TypeClass::activation, "T,rank"),
                      input("k_pe", &MlaAppend::k_pe, TypeClass::activation, "T,rope"),
                      pooled(updated("latent_cache", &MlaAppend::latent_cache, TypeClass::cache, "S,rank")),
                      pooled(updated("rope_cache", &MlaAppend::rope_cache, TypeClass::cache, "S,rope")),
                      optional_input("seq_starts", &MlaAppend::seq_starts, TypeClass::i32, "B1"),
                      optional_input("slots", &MlaAppend::slots, TypeClass::i32, "B"),
                      page_table_input<MlaAppend>(),
                      attribute("start", &MlaAppend::start, "rows already in the cache"));
  }
  // Limits that shapes cannot express; reads the field contents only where they are in host memory.
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
