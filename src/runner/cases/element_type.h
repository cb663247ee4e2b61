// The activation types that a case table covers.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "runner/case.h"
#include "sluice/ops/dtype.h"

namespace sluice::runner {

struct TypePair {
  ops::DType first;
  ops::DType second;
  std::string label;
};

inline const std::array<TypePair, 4>& type_pairs() {
  using ops::DType;
  static const std::array<TypePair, 4> kPairs = {
      TypePair{DType::f32, DType::f32, "f32"}, TypePair{DType::bf16, DType::bf16, "bf16"},
      TypePair{DType::f32, DType::bf16, "f32 and bf16"}, TypePair{DType::bf16, DType::f32, "bf16 and f32"}};
  return kPairs;
}

// A case for each pair of types and each labelled sample.
template <class Sample, class Make>
std::vector<Case> cases_of_types(const std::vector<Sample>& samples, const Make& make) {
  std::vector<Case> table;
  for (const TypePair& types : type_pairs())
    for (const Sample& sample : samples)
      table.push_back(
          {sample.label + " " + types.label, [=](std::uint64_t seed) { return make(seed, types, sample); }});
  return table;
}

}  // namespace sluice::runner
