// Which expert of a layer is evicted when another one needs its slot.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::experts {

// One object per layer. Experts of the current pass are never candidates.
class Policy {
 public:
  virtual ~Policy() = default;
  // A pass begins that needs these (distinct) experts.
  virtual void use(std::span<const std::int32_t> experts) = 0;
  // Returns one of `candidates` (at least one), all of them in slots.
  virtual std::int32_t victim(std::span<const std::int32_t> candidates) = 0;
};

// "lru": evicts the least recently used. "lfru": the least used, with old uses counting less. "static": the
// one with the fewest uses in `profile`, which has one number per expert.
std::unique_ptr<Policy> make_policy(std::string_view name, std::int64_t experts,
                                    std::span<const std::uint32_t> profile = {});
std::vector<std::string_view> policy_names();

// Knows the future: `passes` holds the experts of every pass of the layer. Evicts the one needed last, the
// optimum, against which others are measured.
std::unique_ptr<Policy> make_belady(std::int64_t experts, std::span<const std::vector<std::int32_t>> passes);

}  // namespace sluice::experts
