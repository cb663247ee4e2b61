// What a packed cache costs in the quality of predictions.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "sluice/engine.h"

namespace sluice {

struct CacheQuality {
  std::int64_t contexts = 0;
  std::int64_t tokens = 0;    // predicted
  double nats_per_token = 0;  // of the engine asked about
  double nats_per_token_against = 0;
  double divergence = 0;     // mean of KL(against || engine), nats per token
  double worst_context = 0;  // the largest mean divergence of one context
  double agreement = 0;      // share of tokens for which both hold the same one most likely
};

// Two engines with the same model and other caches, over the first `contexts` pieces (0: all) of so many
// tokens of a text, its documents joined. Every token reads all rows from the cache, as a generated one does.
CacheQuality compare_caches(
    Engine& engine, Engine& against, std::string_view text, std::int64_t context, std::int64_t contexts,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {});

}  // namespace sluice
