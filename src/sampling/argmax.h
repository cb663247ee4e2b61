// The most likely token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::sampling {

// The index of the first of the largest; `values` hold no NaN and at least one number.
std::size_t largest(std::span<const float> values);

// The same as a token; NaN among the logits is an error of the checkpoint.
std::int32_t argmax(std::span<const float> logits);

}  // namespace sluice::sampling
