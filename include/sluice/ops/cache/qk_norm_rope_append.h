#pragma once

#include "sluice/ops/cache/kv_append.h"
#include "sluice/ops/field.h"
#include "sluice/ops/pointwise/qk_norm_rope.h"

namespace sluice::ops {

// Prepares queries, keys and values for attention: qk_norm_rope, then kv_append, as one op.
struct QkNormRopeAppend {
  static constexpr std::string_view kName = "qk_norm_rope_append";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula =
      "q, k = qk_norm_rope(q, k), then k_cache[start+i] = k[i], v_cache[start+i] = v[i]";

  View q;
  View k;
  ConstView v;
  ConstView q_weight;
  ConstView k_weight;
  ConstView inv_freq;
  ConstView positions;
  View k_cache;
  View v_cache;
  ConstView seq_starts;
  ConstView slots;
  ConstView page_table = {};
  double eps = 1e-6;
  double mscale = 1;
  SequenceValue start;

  template <class Op>
  static constexpr auto fields() {
    return contract(updated("q", &Op::q, TypeClass::activation, "T,H,D"),
                    updated("k", &Op::k, TypeClass::activation, "T,KH,D"),
                    input("v", &Op::v, TypeClass::activation, "T,KH,Dv"), QkNormRope::parameters<Op>(),
                    KvAppend::caches<Op>(), paged_sequence_inputs<Op>(), QkNormRope::attributes<Op>(),
                    attribute("start", &Op::start, "rows already in the cache"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
