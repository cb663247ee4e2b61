#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Causal attention in the latent space; every head reads the same cache.
struct MlaAttention {
  static constexpr std::string_view kName = "mla_attention";
  static constexpr std::string_view kFamily = "Multi-head latent attention";
  static constexpr std::string_view kFormula =
      "scores = scale * (q_latent . latent + q_pe . rope); out = softmax(scores) latent; query i sees "
      "rows 0..start+i";

  ConstView q_latent;         // [T,H,rank]
  ConstView q_pe;             // [T,H,rope]
  ConstView latent_cache;     // [S,rank], pooled
  ConstView rope_cache;       // [S,rope], pooled
  View out;                   // [T,H,rank]
  ConstView seq_starts;       // I32 [B+1], optional: cuts the tokens into B sequences
  ConstView slots;            // I32 [B], optional: the pool row of each sequence, default 0..B-1
  ConstView page_table = {};  // I32 [slots,pages] or [pages], optional: the pages of each sequence
  SequenceValue start;        // cache row of the first query
  double scale = 1;           // factor on the scores

  static constexpr auto fields() {
    return std::tuple(input("q_latent", &MlaAttention::q_latent, TypeClass::activation, "T,H,rank"),
                      input("q_pe", &MlaAttention::q_pe, TypeClass::activation, "T,H,rope"),
                      pooled(input("latent_cache", &MlaAttention::latent_cache, TypeClass::cache, "S,rank")),
                      pooled(input("rope_cache", &MlaAttention::rope_cache, TypeClass::cache, "S,rope")),
                      output("out", &MlaAttention::out, TypeClass::activation, "T,H,rank"),
                      optional_input("seq_starts", &MlaAttention::seq_starts, TypeClass::i32, "B1"),
                      optional_input("slots", &MlaAttention::slots, TypeClass::i32, "B"),
                      page_table_input<MlaAttention>(),
                      attribute("start", &MlaAttention::start, "cache row of the first query"),
                      attribute("scale", &MlaAttention::scale, "factor on the scores"));
  }
  // Limits that shapes cannot express; reads the field contents only where they are in host memory.
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
