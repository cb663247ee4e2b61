#pragma once

#include "sluice/ops/cache/turboquant_encode.h"
#include "sluice/ops/field.h"

namespace sluice::ops {

// Encodes the latents of new tokens into a packed cache and writes their rotary keys beside it.
struct MlaTurboquantAppend {
  static constexpr std::string_view kName = "mla_turboquant_append";
  static constexpr std::string_view kFamily = "Multi-head latent attention";
  static constexpr std::string_view kFormula =
      "kv_latent[i] is encoded into row start+i as turboquant_append does, rope_cache[start+i] = k_pe[i]";

  ConstView kv_latent;
  ConstView k_pe;
  ConstView signs;
  View latent_codes;
  View latent_norms;
  View rope_cache;
  ConstView seq_starts;
  ConstView slots;  // the pool row of each sequence
  ConstView page_table = {};
  std::int64_t bits = 4;
  TurboquantNorm norm = TurboquantNorm::plain;  // plain: |x|; matched: |x|*sqrt(D)/|levels|
  SequenceValue start;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("kv_latent", &Op::kv_latent, TypeClass::activation, "T,rank"),
                    input("k_pe", &Op::k_pe, TypeClass::activation, "T,rope"),
                    optional_input("signs", &Op::signs, TypeClass::u8, "rank/8"),
                    pooled(updated("latent_codes", &Op::latent_codes, TypeClass::u8, "S,rank*bits/8")),
                    pooled(updated("latent_norms", &Op::latent_norms, TypeClass::f32, "S")),
                    pooled(updated("rope_cache", &Op::rope_cache, TypeClass::cache, "S,rope")),
                    paged_sequence_inputs<Op>(), attribute("bits", &Op::bits, "2, 3, 4, 5, 6 or 8"),
                    optional_attribute("norm", &Op::norm, "plain: |x|; matched: |x|*sqrt(D)/|levels|"),
                    attribute("start", &Op::start, "rows already in the cache"));
  }
  void check_attributes() const;
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
