// Measures how much a packed cache degrades predictions.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "sluice/engine.h"

namespace sluice {

struct CacheQuality {
  std::int64_t contexts = 0;
  std::int64_t tokens = 0;    // predicted
  double nats_per_token = 0;  // of `engine`
  double nats_per_token_against = 0;
  double divergence = 0;     // mean of KL(against || engine), nats per token
  double worst_context = 0;  // the largest mean divergence of one context
  double agreement = 0;      // share of tokens for which both give the same most likely token
};

// Compares two engines with the same model and different caches, over the first `contexts` pieces (0: all) of
// a text's joined documents. Every token reads all rows from the cache, as a generated one does.
CacheQuality compare_caches(
    Engine& engine, Engine& against, std::string_view text, std::int64_t context, std::int64_t contexts,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {});

}  // namespace sluice
