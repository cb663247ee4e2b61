// How well a model predicts a text.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "sluice/engine.h"

namespace sluice {

struct PerplexityResult {
  std::int64_t documents = 0;
  std::int64_t tokens = 0;   // predicted
  std::int64_t windows = 0;  // that the tokens were predicted in
  std::uint64_t bytes = 0;   // of the text
  double nats_per_token = 0;
  double bits_per_byte = 0;
};

struct PerplexityOptions {
  std::int64_t context = 0;  // tokens; 0: the model's longest
  // Tokens by which a window advances: fewer give each token more context and take longer; 0: the context's
  // length, so windows do not overlap.
  std::int64_t stride = 0;
};

// Documents end at lines "<|endoftext|>" and are scored one by one, from their second token to the end token
// that closes them; bits per byte divides the same loss by all of the text. Documents longer than the context
// are scored whole, in windows.
PerplexityResult measure_perplexity(
    Engine& engine, std::string_view text, const PerplexityOptions& options,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {});

}  // namespace sluice
