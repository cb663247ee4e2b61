#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Splits the projected queries and the compressed keys and values into their parts.
struct MlaSplit {
  static constexpr std::string_view kName = "mla_split";
  static constexpr std::string_view kFamily = "Multi-head latent attention";
  static constexpr std::string_view kFormula =
      "q_full = [q_nope | q_pe] per head, kv_pre = [kv_latent | k_pe]";

  ConstView q_full;
  ConstView kv_pre;
  View q_nope;
  View q_pe;
  View kv_latent;
  View k_pe;
  std::int64_t nope = 0;
  std::int64_t rope = 0;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("q_full", &Op::q_full, TypeClass::activation, "T,H,nope+rope"),
                    input("kv_pre", &Op::kv_pre, TypeClass::activation, "T,rank+rope"),
                    output("q_nope", &Op::q_nope, TypeClass::activation, "T,H,nope"),
                    output("q_pe", &Op::q_pe, TypeClass::activation, "T,H,rope"),
                    output("kv_latent", &Op::kv_latent, TypeClass::activation, "T,rank"),
                    output("k_pe", &Op::k_pe, TypeClass::activation, "T,rope"),
                    attribute("nope", &Op::nope, "channels without rotation"),
                    attribute("rope", &Op::rope, "rotated channels"));
  }
  // A dimension that follows from no input alone.
  void derive(Dims& dims) const {
    if (kv_pre.rank() == 2) dims["rank"] = kv_pre.dim(1) - rope;
  }
  void check_attributes() const;
};

}  // namespace sluice::ops
