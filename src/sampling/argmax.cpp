#include "sampling/argmax.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::sampling {

namespace {

// Maps floats to integers of the same order, which compilers compare with vector instructions.
std::int32_t ordered(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits ^ (bits >> 31 & 0x7fffffff);
}

}  // namespace

std::size_t largest(std::span<const float> values) {
  std::int32_t most = ordered(values[0]);
  for (const float value : values) most = std::max(most, ordered(value));
  const auto best = std::bit_cast<float>(most ^ (most >> 31 & 0x7fffffff));
  return to_size(std::find(values.begin(), values.end(), best) - values.begin());
}

std::int32_t argmax(std::span<const float> logits) {
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (std::isnan(logits[i]))
      fail(ErrorKind::checkpoint,
           "the logit of token {} is NaN: the weights are damaged, or their format is not what "
           "config.json says",
           i);
  return largest(logits);
}

}  // namespace sluice::sampling
