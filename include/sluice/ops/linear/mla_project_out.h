#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// The value up-projection of each head; kv_b holds per head `nope` K rows, then `v` V rows.
struct MlaProjectOut {
  static constexpr std::string_view kName = "mla_project_out";
  static constexpr std::string_view kFamily = "Multi-head latent attention";
  static constexpr std::string_view kFormula =
      "out[h] = V_h latent[h], with V_h the V rows of kv_b, or unembed_out[h]";

  ConstView latent;
  Weight kv_b;
  Weight unembed_out;
  View out;
  std::int64_t nope = 0;

  template <class Op>
  static constexpr auto fields() {
    return contract(input("latent", &Op::latent, TypeClass::activation, "T,H,rank"),
                    optional_matrix("kv_b", &Op::kv_b, "H*(nope+v),rank"),
                    optional_matrix("unembed_out", &Op::unembed_out, "H,v,rank"),
                    output("out", &Op::out, TypeClass::activation, "T,H,v"),
                    optional_attribute("nope", &Op::nope, "K rows per head of kv_b; needed with kv_b"));
  }
  // A dimension that follows from no input alone.
  void derive(Dims& dims) const {
    if (kv_b.present() && latent.rank() == 3 && latent.dim(1) > 0)
      dims["v"] = kv_b.shape()[0] / latent.dim(1) - nope;
  }
  void check_attributes() const;
};

}  // namespace sluice::ops
