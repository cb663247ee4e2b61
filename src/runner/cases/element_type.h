// The activation types a case table walks through.
#pragma once

#include <array>
#include <string>

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

}  // namespace sluice::runner
