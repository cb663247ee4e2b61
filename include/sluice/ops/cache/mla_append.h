#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Writes the latents and rotary keys of new tokens into the cache.
struct MlaAppend {
  static constexpr std::string_view kName = "mla_append";
  static constexpr std::string_view kFamily = "Multi-head latent attention";
  static constexpr std::string_view kFormula =
      "latent_cache[start+i] = kv_latent[i], rope_cache[start+i] = k_pe[i]";

  ConstView kv_latent;
  ConstView k_pe;
  View latent_cache;
  View rope_cache;
  ConstView seq_starts;
  ConstView slots;
  ConstView page_table = {};
  SequenceValue start;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("kv_latent", &Op::kv_latent, TypeClass::activation, "T,rank"),
                    input("k_pe", &Op::k_pe, TypeClass::activation, "T,rope"),
                    pooled(updated("latent_cache", &Op::latent_cache, TypeClass::cache, "S,rank")),
                    pooled(updated("rope_cache", &Op::rope_cache, TypeClass::cache, "S,rope")),
                    paged_sequence_inputs<Op>(), attribute("start", &Op::start, "rows already in the cache"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
