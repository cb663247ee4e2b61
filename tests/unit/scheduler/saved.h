// Bytes as stored for cached prompts.
#pragma once

#include <algorithm>
#include <vector>

#include "scheduler/prefix/host_memory.h"

namespace sluice::scheduler::prefix {

inline SavedState saved(std::vector<std::byte> bytes) {
  struct Held {
    std::vector<std::byte> owner;
    std::span<const std::byte> bytes;
  };
  const auto held = std::make_shared<Held>(Held{std::move(bytes), {}});
  held->bytes = held->owner;
  return {held, &held->bytes};
}

inline bool same(const SavedState& a, const SavedState& b) {
  return std::equal(a->begin(), a->end(), b->begin(), b->end());
}

}  // namespace sluice::scheduler::prefix
