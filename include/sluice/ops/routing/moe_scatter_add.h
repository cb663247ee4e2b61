#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Adds one expert's bucket into the per-token sums, in bucket order.
struct MoeScatterAdd {
  static constexpr std::string_view kName = "moe_scatter_add";
  static constexpr std::string_view kFamily = "Mixture of experts";
  static constexpr std::string_view kFormula = "sum[token_idx[i]] += weights[i] * bucket_out[i]";

  ConstView bucket_out;
  ConstView token_idx;
  ConstView weights;
  View sum;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("bucket_out", &Op::bucket_out, TypeClass::activation, "bucket,D"),
                    input("token_idx", &Op::token_idx, TypeClass::i32, "bucket"),
                    input("weights", &Op::weights, TypeClass::f32, "bucket"),
                    updated("sum", &Op::sum, TypeClass::activation, "T,D"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
