// Which expert of a layer goes when another one needs its slot.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::experts {

// One an object a layer. Experts of the pass that is running are never candidates.
class Policy {
 public:
  virtual ~Policy() = default;
  // A pass begins that needs these, each named once.
  virtual void use(std::span<const std::int32_t> experts) = 0;
  // One of `candidates` (at least one), all of them in slots.
  virtual std::int32_t victim(std::span<const std::int32_t> candidates) = 0;
};

// "lru": the one not needed for longest. "lfru": the one needed least, old needs counting less. "static": the
// one that `profile`, uses an expert, calls for least often.
std::unique_ptr<Policy> make_policy(std::string_view name, std::int64_t experts,
                                    std::span<const std::uint32_t> profile = {});
std::vector<std::string_view> policy_names();

// Knows the future: `passes` holds the experts of every pass of the layer. Evicts what is needed last, as no
// policy without that knowledge can; the bound to measure others against.
std::unique_ptr<Policy> make_belady(std::int64_t experts, std::span<const std::vector<std::int32_t>> passes);

}  // namespace sluice::experts
