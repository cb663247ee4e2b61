#include "experts/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::experts {

namespace {

// The candidate with the smallest value.
template <class Values>
std::int32_t smallest(std::span<const std::int32_t> candidates, const Values& values) {
  return *std::min_element(candidates.begin(), candidates.end(),
                           [&](std::int32_t a, std::int32_t b) { return values[a] < values[b]; });
}

class Lru final : public Policy {
 public:
  explicit Lru(std::int64_t experts) : last_(to_size(experts)) {}
  void use(std::span<const std::int32_t> experts) override {
    ++now_;
    for (const std::int32_t e : experts) last_[e] = now_;
  }
  std::int32_t victim(std::span<const std::int32_t> candidates) override {
    return smallest(candidates, last_);
  }

 private:
  std::uint64_t now_ = 0;
  std::vector<std::uint64_t> last_;
};

// A use counts half after kHalfLife passes. Stored as logarithms of sums that grow instead of decaying, so
// that nothing changes between uses: log2 of sum 2^(time of use / half-life).
class Lfru final : public Policy {
 public:
  explicit Lfru(std::int64_t experts) : weight_(to_size(experts), -std::numeric_limits<double>::infinity()) {}
  void use(std::span<const std::int32_t> experts) override {
    ++now_;
    const double added = to_double(now_) / kHalfLife;
    for (const std::int32_t e : experts) {
      double& weight = weight_[e];
      weight = added + std::log2(1 + std::exp2(weight - added));
    }
  }
  std::int32_t victim(std::span<const std::int32_t> candidates) override {
    return smallest(candidates, weight_);
  }

 private:
  static constexpr double kHalfLife = 256;
  std::uint64_t now_ = 0;
  std::vector<double> weight_;
};

class Static final : public Policy {
 public:
  explicit Static(std::span<const std::uint32_t> profile) : uses_(profile.begin(), profile.end()) {}
  void use(std::span<const std::int32_t>) override {}
  std::int32_t victim(std::span<const std::int32_t> candidates) override {
    return smallest(candidates, uses_);
  }

 private:
  std::vector<std::uint32_t> uses_;
};

class Belady final : public Policy {
 public:
  Belady(std::int64_t experts, std::span<const std::vector<std::int32_t>> passes) : uses_(to_size(experts)) {
    for (std::size_t pass = passes.size(); pass > 0; --pass)
      for (const std::int32_t e : passes[pass - 1]) uses_[e].push_back(pass);
  }
  void use(std::span<const std::int32_t>) override {
    ++now_;
    for (std::vector<std::size_t>& uses : uses_)
      while (!uses.empty() && uses.back() <= now_) uses.pop_back();
  }
  std::int32_t victim(std::span<const std::int32_t> candidates) override {
    return *std::max_element(candidates.begin(), candidates.end(),
                             [&](std::int32_t a, std::int32_t b) { return next(a) < next(b); });
  }

 private:
  std::size_t next(std::int32_t e) const {
    const std::vector<std::size_t>& uses = uses_[e];
    return uses.empty() ? std::numeric_limits<std::size_t>::max() : uses.back();
  }
  std::size_t now_ = 0;
  std::vector<std::vector<std::size_t>> uses_;  // by expert: the passes that use it, next last
};

}  // namespace

std::unique_ptr<Policy> make_policy(std::string_view name, std::int64_t experts,
                                    std::span<const std::uint32_t> profile) {
  if (name == "lru") return std::make_unique<Lru>(experts);
  if (name == "lfru") return std::make_unique<Lfru>(experts);
  if (name != "static")
    fail(ErrorKind::input, "the expert policy '{}' is unknown; known are {}", name,
         fmt::join(policy_names(), ", "));
  if (std::ssize(profile) != experts)
    fail(ErrorKind::input, "the policy 'static' needs a profile of {} experts, given are {}", experts,
         profile.size());
  return std::make_unique<Static>(profile);
}

std::vector<std::string_view> policy_names() {
  return {"lru", "lfru", "static"};
}

std::unique_ptr<Policy> make_belady(std::int64_t experts, std::span<const std::vector<std::int32_t>> passes) {
  return std::make_unique<Belady>(experts, passes);
}

}  // namespace sluice::experts
