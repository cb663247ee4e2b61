#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// Row lookup in an embedding table.
struct Embed {
  static constexpr std::string_view kName = "embed";
  static constexpr std::string_view kFamily = "Linear algebra";
  static constexpr std::string_view kFormula = "out[t] = table[ids[t]], dequantised";

  Weight table;
  ConstView ids;
  View out;

  template <class Op>
  static constexpr auto fields() {
    return contract(matrix("table", &Op::table, "V,D"), input("ids", &Op::ids, TypeClass::i32, "T"),
                    output("out", &Op::out, TypeClass::activation, "T,D"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
