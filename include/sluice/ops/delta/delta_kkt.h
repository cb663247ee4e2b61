#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// First stage of the chunked form; g is cumulative within each chunk.
struct DeltaKkt {
  static constexpr std::string_view kName = "delta_kkt";
  static constexpr std::string_view kFamily = "Gated delta rule";
  static constexpr std::string_view kFormula =
      "A_ij = beta_i (k_i . k_j) e^(g_i - g_j) for i > j within a chunk, 0 elsewhere; key head h/(H/Hg); "
      "with BF16 k, k*beta is rounded to BF16 before the dot";

  ConstView k;
  ConstView beta;
  ConstView g;
  View A;
  std::int64_t chunk = 64;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("k", &Op::k, TypeClass::activation, "B,T,Hg,K"),
                    input("beta", &Op::beta, TypeClass::f32, "B,T,H"),
                    input("g", &Op::g, TypeClass::f32, "B,T,H"),
                    output("A", &Op::A, TypeClass::f32, "B,T,H,chunk"),
                    attribute("chunk", &Op::chunk, "tokens per chunk"));
  }
  void check_attributes() const;
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
