#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Folds the key up-projection into the queries; kv_b holds per head `nope` K rows, then `v` V rows.
struct MlaAbsorbQ {
  static constexpr std::string_view kName = "mla_absorb_q";
  static constexpr std::string_view kFamily = "Multi-head latent attention";
  static constexpr std::string_view kFormula =
      "q_latent[h] = q_nope[h] K_h, with K_h the K rows of kv_b, or embed_q[h] transposed";

  ConstView q_nope;
  Weight kv_b;
  Weight embed_q;
  View q_latent;
  std::int64_t v = 0;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("q_nope", &Op::q_nope, TypeClass::activation, "T,H,nope"),
                    optional_matrix("kv_b", &Op::kv_b, "H*(nope+v),rank"),
                    optional_matrix("embed_q", &Op::embed_q, "H,rank,nope"),
                    output("q_latent", &Op::q_latent, TypeClass::activation, "T,H,rank"),
                    optional_attribute("v", &Op::v, "V rows per head of kv_b; needed with kv_b"));
  }
  void check_attributes() const;
};

}  // namespace sluice::ops
