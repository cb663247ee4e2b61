// How well a model predicts a text.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "sluice/engine.h"

namespace sluice {

struct PerplexityResult {
  std::int64_t documents = 0;
  std::int64_t tokens = 0;  // predicted
  std::uint64_t bytes = 0;  // of the text
  double nats_per_token = 0;
  double bits_per_byte = 0;
};

// Documents end at lines "<|endoftext|>" and are scored one by one, from their second token to the end token
// that closes them; bits per byte divides the same loss by all of the text. Longer documents are cut at
// `context` tokens.
PerplexityResult measure_perplexity(
    Engine& engine, std::string_view text, std::int64_t context,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {});

}  // namespace sluice
