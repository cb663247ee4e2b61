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

  static constexpr auto fields() {
    return std::tuple(matrix("table", &Embed::table, "V,D"), input("ids", &Embed::ids, TypeClass::i32, "T"),
                      output("out", &Embed::out, TypeClass::activation, "T,D"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
