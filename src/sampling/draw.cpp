#include "sampling/draw.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/integer_cast.h"

namespace sluice::sampling {

namespace {

// Descending order; equal logits by index.
struct Before {
  std::span<const float> logits;

  bool operator()(std::int32_t a, std::int32_t b) const {
    const float x = logits[to_size(a)];
    const float y = logits[to_size(b)];
    return x != y ? x > y : a < b;
  }
};

// Candidates and their weights, in descending order of logits, but never fully sorted: a vocabulary is large,
// and the choice is found by partitioning.
class Candidates {
 public:
  Candidates(std::span<const float> logits, std::size_t count, double temperature)
      : before_{logits}, order_(logits.size()), weights_(logits.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    if (count < order_.size()) put_first(0, count, order_.size());
    order_.resize(count);
    const float largest = *std::max_element(logits.begin(), logits.end());
    for (const std::int32_t i : order_)
      total_ += weights_[to_size(i)] = draw_weight(logits[to_size(i)], largest, temperature);
  }

  std::uint64_t total() const { return total_; }
  // The sum of all weights that are at least `least`.
  std::uint64_t sum_of(double least) const {
    std::uint64_t sum = 0;
    for (const std::int32_t i : order_)
      if (const std::uint64_t weight = weight_of(i); to_double(weight) >= least) sum += weight;
    return sum;
  }
  struct Found {
    std::int32_t index = 0;
    std::uint64_t sum = 0;  // of the weights up to and including it
  };
  // The first one at which the sum of the weights exceeds `goal`, which is less than the total.
  Found find(std::uint64_t goal) {
    constexpr std::size_t kFew = 64;
    std::size_t begin = 0;
    std::size_t end = order_.size();
    std::uint64_t sum = 0;
    while (end - begin > kFew) {
      const std::size_t middle = begin + (end - begin) / 2;
      put_first(begin, middle, end);
      std::uint64_t half = 0;
      for (std::size_t i = begin; i < middle; ++i) half += weight_of(order_[i]);
      if (sum + half > goal) {
        end = middle;
      } else {
        sum += half;
        begin = middle;
      }
    }
    std::sort(order_.begin() + begin, order_.begin() + end, before_);
    while ((sum += weight_of(order_[begin])) <= goal) ++begin;
    return {order_[begin], sum};
  }

 private:
  // Partitions [begin,end) so that those that belong before `middle` are there.
  void put_first(std::size_t begin, std::size_t middle, std::size_t end) {
    const auto at = [this](std::size_t i) { return order_.begin() + i; };
    std::nth_element(at(begin), at(middle), at(end), before_);
  }
  std::uint64_t weight_of(std::int32_t index) const { return weights_[to_size(index)]; }

  Before before_;
  std::vector<std::int32_t> order_;
  std::vector<std::uint64_t> weights_;  // by index
  std::uint64_t total_ = 0;
};

}  // namespace

std::int32_t draw(std::span<const float> logits, const DrawSettings& settings, std::uint64_t seed,
                  std::uint64_t position) {
  std::size_t count = logits.size();
  if (settings.top_k > 0) count = std::min(count, to_size(settings.top_k));
  Candidates candidates(logits, count, settings.temperature);
  std::uint64_t kept = candidates.total();
  if (const std::uint64_t goal = kept_goal(settings.top_p, kept); goal < kept)
    kept = candidates.find(goal - 1).sum;
  kept = std::min(kept, candidates.sum_of(settings.min_p / kWeightUnit));
  return candidates.find(draw_target(seed, position, kept)).index;
}

}  // namespace sluice::sampling
