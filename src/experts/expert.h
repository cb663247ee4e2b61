// One expert: three matrices that are read, kept and evicted together.
#pragma once

#include <cstddef>
#include <span>

#include "base/integer_cast.h"
#include "sluice/ops/weight.h"

namespace sluice::experts {

struct Expert {
  ops::Weight gate_proj;  // [intermediate, hidden]
  ops::Weight up_proj;    // [intermediate, hidden]
  ops::Weight down_proj;  // [hidden, intermediate]
};

// f(tensor) for the present values, scales and biases of the matrices, in order.
template <class AnyExpert, class F>
void for_each_tensor(AnyExpert& expert, F&& f) {
  for (auto* matrix : {&expert.gate_proj, &expert.up_proj, &expert.down_proj})
    for (auto* tensor : {&matrix->values, &matrix->scales, &matrix->biases})
      if (tensor->present()) f(*tensor);
}

inline std::span<const std::byte> bytes_of(const ops::ConstView& tensor) {
  return {static_cast<const std::byte*>(tensor.data), to_size(tensor.elements()) * size_bytes(tensor.dtype)};
}

}  // namespace sluice::experts
