#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Causal attention in the latent space, computed from packed latents: one row of codes is the key and the
// value of all heads. A call may also pass the latents of its own tokens as they were before encoding; they
// serve the queries of their own block of 64 positions (fresh_rows.h).
struct MlaTurboquantAttention {
  static constexpr std::string_view kName = "mla_turboquant_attention";
  static constexpr std::string_view kFamily = "Multi-head latent attention";
  static constexpr std::string_view kFormula =
      "scores = scale * (q_latent . latent + q_pe . rope); out = softmax(scores) latent; query i sees rows "
      "0..start+i, decoded, but those of the call as latent_new, if given, where row / 64 is that of its own";

  ConstView q_latent;
  ConstView q_pe;
  ConstView latent_codes;
  ConstView latent_norms;
  ConstView rope_cache;
  ConstView signs;
  ConstView latent_new;  // the latents of the call's tokens before encoding
  View out;
  ConstView seq_starts;
  ConstView slots;
  ConstView page_table = {};
  std::int64_t bits = 4;
  SequenceValue start;
  double scale = 1;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("q_latent", &Op::q_latent, TypeClass::activation, "T,H,rank"),
                    input("q_pe", &Op::q_pe, TypeClass::activation, "T,H,rope"),
                    pooled(input("latent_codes", &Op::latent_codes, TypeClass::u8, "S,rank*bits/8")),
                    pooled(input("latent_norms", &Op::latent_norms, TypeClass::f32, "S")),
                    pooled(input("rope_cache", &Op::rope_cache, TypeClass::cache, "S,rope")),
                    optional_input("signs", &Op::signs, TypeClass::u8, "rank/8"),
                    optional_input("latent_new", &Op::latent_new, TypeClass::activation, "T,rank"),
                    output("out", &Op::out, TypeClass::activation, "T,H,rank"), paged_sequence_inputs<Op>(),
                    attribute("bits", &Op::bits, "2, 3, 4, 5, 6 or 8"),
                    attribute("start", &Op::start, "cache row of the first query"),
                    attribute("scale", &Op::scale, "factor on the scores"));
  }
  void check_attributes() const;
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
