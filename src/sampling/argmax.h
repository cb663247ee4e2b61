// Finds the most likely token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::sampling {

// The index of the first maximum; `values` must not be empty or contain NaN.
std::size_t largest(std::span<const float> values);

// The same as a token; NaN among the logits is an error of the checkpoint.
std::int32_t argmax(std::span<const float> logits);

}  // namespace sluice::sampling
