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

  ConstView q_latent;
  ConstView q_pe;
  ConstView latent_cache;
  ConstView rope_cache;
  View out;
  ConstView seq_starts;
  ConstView slots;
  ConstView page_table = {};
  SequenceValue start;
  double scale = 1;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("q_latent", &Op::q_latent, TypeClass::activation, "T,H,rank"),
                    input("q_pe", &Op::q_pe, TypeClass::activation, "T,H,rope"),
                    pooled(input("latent_cache", &Op::latent_cache, TypeClass::cache, "S,rank")),
                    pooled(input("rope_cache", &Op::rope_cache, TypeClass::cache, "S,rope")),
                    output("out", &Op::out, TypeClass::activation, "T,H,rank"), paged_sequence_inputs<Op>(),
                    attribute("start", &Op::start, "cache row of the first query"),
                    attribute("scale", &Op::scale, "factor on the scores"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
