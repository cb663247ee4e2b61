#pragma once

#include "sluice/ops/cache/turboquant_append.h"
#include "sluice/ops/field.h"
#include "sluice/ops/pointwise/qk_norm_rope.h"

namespace sluice::ops {

// The same for a packed cache: qk_norm_rope, then turboquant_append, as one op.
struct QkNormRopeTurboquantAppend {
  static constexpr std::string_view kName = "qk_norm_rope_turboquant_append";
  static constexpr std::string_view kFamily = "Attention and its caches";
  static constexpr std::string_view kFormula =
      "q, k = qk_norm_rope(q, k), then k and v of token i are encoded into slot (start+i) mod S";

  View q;
  View k;
  ConstView v;
  ConstView q_weight;
  ConstView k_weight;
  ConstView inv_freq;
  ConstView positions;
  ConstView signs;
  View k_codes;
  View v_codes;
  View k_norms;
  View v_norms;
  ConstView seq_starts;
  ConstView slots;
  ConstView page_table = {};
  double eps = 1e-6;
  double mscale = 1;
  std::int64_t k_bits = 4;
  std::int64_t v_bits = 4;
  TurboquantNorm norm = TurboquantNorm::plain;  // plain: |x|; matched: |x|*sqrt(D)/|levels|
  SequenceValue start;

  template <class Op>
  static constexpr auto fields() {
    return contract(updated("q", &Op::q, TypeClass::activation, "T,H,D"),
                    updated("k", &Op::k, TypeClass::activation, "T,KH,D"),
                    input("v", &Op::v, TypeClass::activation, "T,KH,D"), QkNormRope::parameters<Op>(),
                    TurboquantAppend::caches<Op>(), paged_sequence_inputs<Op>(), QkNormRope::attributes<Op>(),
                    TurboquantAppend::attributes<Op>());
  }
  void check_attributes() const;
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
