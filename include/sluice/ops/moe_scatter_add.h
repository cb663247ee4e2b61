#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Adds one expert's bucket into the per-token sums, in bucket order.
struct MoeScatterAdd {
  static constexpr std::string_view kName = "moe_scatter_add";
  static constexpr std::string_view kFamily = "Mixture of experts";
  static constexpr std::string_view kFormula = "sum[token_idx[i]] += weights[i] * bucket_out[i]";

  ConstView bucket_out;  // [bucket,D]
  ConstView token_idx;   // [bucket]
  ConstView weights;     // [bucket]
  View sum;              // [T,D], in place

  static constexpr auto fields() {
    return std::tuple(input("bucket_out", &MoeScatterAdd::bucket_out, TypeClass::activation, "bucket,D"),
                      input("token_idx", &MoeScatterAdd::token_idx, TypeClass::i32, "bucket"),
                      input("weights", &MoeScatterAdd::weights, TypeClass::f32, "bucket"),
                      updated("sum", &MoeScatterAdd::sum, TypeClass::activation, "T,D"));
  }
  // Limits that shapes cannot express; reads the field contents only where they are in host memory.
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
