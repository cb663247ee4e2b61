#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// The next token of each row. Weights are exp((logit - largest) / temperature) in units of 2^-40, added as
// integers: the choice does not depend on the order of a sum. NaN logits are an error.
struct Sample {
  static constexpr std::string_view kName = "sample";
  static constexpr std::string_view kFamily = "Sampling";
  static constexpr std::string_view kFormula =
      "ids = the largest logit, or a draw by softmax(logits / temperature) among the top_k, top_p and min_p "
      "most "
      "likely; equal logits by lower index; positions += 1, and the draw depends on seed and new position "
      "alone";

  ConstView logits;        // [T,V]
  View positions;          // I32 [T], in place
  View ids;                // I32 [T]
  double temperature = 0;  // 0: the largest logit
  std::int64_t top_k = 0;  // candidates kept; 0: all
  double top_p = 1;        // share of the probability kept
  double min_p = 0;        // least probability kept, relative to the largest
  std::int64_t seed = 0;   // of the draws

  static constexpr auto fields() {
    return std::tuple(
        input("logits", &Sample::logits, TypeClass::f32, "T,V"),
        updated("positions", &Sample::positions, TypeClass::i32, "T"),
        output("ids", &Sample::ids, TypeClass::i32, "T"),
        optional_attribute("temperature", &Sample::temperature, "0: the largest logit"),
        optional_attribute("top_k", &Sample::top_k, "candidates kept; 0: all"),
        optional_attribute("top_p", &Sample::top_p, "share of the probability kept"),
        optional_attribute("min_p", &Sample::min_p, "least probability kept, relative to the largest"),
        optional_attribute("seed", &Sample::seed, "of the draws"));
  }
  // Limits that shapes cannot express; reads the field contents only where they are in host memory.
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
