// The choices of experts in the case tables of the expert ops.
#pragma once

#include <vector>

#include "base/integer_cast.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

// I32 [T,k]: every expert equally likely; since `experts` is often small, a token may choose one twice.
inline HostTensor any_experts(Random& random, std::int64_t tokens, std::int64_t k, std::int64_t experts) {
  return integers(random, {tokens, k}, experts);
}

// I32 [T,k]: k distinct experts per token, as routers choose them.
inline HostTensor distinct_experts(Random& random, std::int64_t tokens, std::int64_t k,
                                   std::int64_t experts) {
  HostTensor chosen(ops::DType::i32, {tokens, k});
  std::vector<std::int32_t> order(to_size(experts));
  for (std::size_t e = 0; e < order.size(); ++e) order[e] = to_int(e);
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t j = 0; j < k; ++j) {
      std::swap(order[j], order[to_size(j + random.integer(experts - j))]);
      chosen.data<std::int32_t>()[t * k + j] = order[j];
    }
  return chosen;
}

}  // namespace sluice::runner
