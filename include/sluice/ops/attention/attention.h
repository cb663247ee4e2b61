#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Causal attention over the cache; head h reads KV head h/(H/KH).
struct Attention {
  static constexpr std::string_view kName = "attention";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula =
      "out = softmax(scale * q kT) v; query i sees rows 0..start+i, only the last `window` of them if set";

  ConstView q;
  ConstView k_cache;
  ConstView v_cache;
  View out;
  ConstView seq_starts;
  ConstView slots;
  ConstView page_table = {};
  SequenceValue start;
  double scale = 1;
  std::int64_t window = 0;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("q", &Op::q, TypeClass::activation, "T,H,D"),
                    pooled(input("k_cache", &Op::k_cache, TypeClass::cache, "S,KH,D")),
                    pooled(input("v_cache", &Op::v_cache, TypeClass::cache, "S,KH,Dv")),
                    output("out", &Op::out, TypeClass::activation, "T,H,Dv"), paged_sequence_inputs<Op>(),
                    attribute("start", &Op::start, "cache row of the first query"),
                    attribute("scale", &Op::scale, "factor on the scores"),
                    optional_attribute("window", &Op::window, "rows a query sees, its own included; 0: all"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
