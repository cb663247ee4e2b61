// Simulates which recurrent states the prefix cache keeps if there is little room, and which ones other
// policies would; rows are never evicted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "experts/fingerprint.h"
#include "saved.h"
#include "scheduler/prefix/prefix_tree.h"

namespace sluice::scheduler::prefix {

using Prompt = std::vector<std::int32_t>;

class NoPages final : public PageOwner {
 public:
  std::int64_t rows() const override { return 256; }
  void hold(std::int32_t) override {}
  void drop(std::int32_t) override {}
  bool shared(std::int32_t) const override { return false; }
  SavedState save_block(std::int32_t, std::int64_t) override { return {}; }
  SavedState save_snapshot(std::int32_t) override { return {}; }
};

// The points at which states are saved, as in the scheduler.
inline std::vector<std::int64_t> points_of(std::int64_t tokens, std::int64_t common, std::int64_t cached,
                                           std::int64_t spacing) {
  std::vector<std::int64_t> points = {common / 64 * 64, tokens / 64 * 64};
  for (std::int64_t at = spacing; at < tokens; at += spacing) points.push_back(at);
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  std::erase_if(points, [&](std::int64_t at) { return at <= cached; });
  return points;
}

// The tokens computed for each prompt of a trace, with room for that many states.
class PolicySimulation {
 public:
  using Counts = std::vector<std::int64_t>;
  explicit PolicySimulation(const std::vector<Prompt>& trace, std::int64_t spacing = 4096)
      : trace_(trace), spacing_(spacing) {
    for (const Prompt& prompt : trace) names_.push_back(names_of(prompt));
    // The uses of each state, if there were room for everything.
    std::vector<std::uint64_t> uses;
    run(
        std::numeric_limits<std::size_t>::max(), [](std::uint64_t, std::size_t used) { return used; }, &uses);
    for (std::size_t i = 0; i < uses.size(); ++i) times_[uses[i]].push_back(i);
  }

  Counts by_tree(std::uint64_t states) const {
    NoPages pages;
    PrefixTree tree(pages, {.host_bytes = states, .nodes = std::size_t{1} << 30});
    const auto state = saved(std::vector<std::byte>(1));
    Counts computed;
    std::int32_t next_page = 0;
    for (const Prompt& prompt : trace_) {
      const auto tokens = std::ssize(prompt);
      const PrefixTree::Match match = tree.find({}, prompt, tokens - 1);
      computed.push_back(tokens - match.rows);
      for (const std::int64_t rows : points_of(tokens, match.common, match.rows, spacing_)) {
        std::vector<std::int32_t> used(static_cast<std::size_t>((rows + 255) / 256));
        for (std::int32_t& page : used) page = next_page++;
        tree.insert({}, prompt, rows, used, {.bytes = state});
      }
      tree.note({}, prompt);
    }
    return computed;
  }
  // Evicts the least recently used state.
  Counts by_age(std::size_t states) const {
    return run(states, [](std::uint64_t, std::size_t used) { return used; });
  }
  // Evicts the state whose next use is the farthest.
  Counts clairvoyant(std::size_t states) const {
    return run(states, [&](std::uint64_t name, std::size_t now) {
      const auto found = times_.find(name);
      if (found == times_.end()) return std::size_t{0};
      const auto next = std::upper_bound(found->second.begin(), found->second.end(), now);
      return next == found->second.end() ? 0 : std::numeric_limits<std::size_t>::max() - *next;
    });
  }

 private:
  // One for each prefix of complete blocks.
  static std::vector<std::uint64_t> names_of(const Prompt& prompt) {
    std::vector<std::uint64_t> names;
    for (std::size_t at = 0; at + 64 <= prompt.size(); at += 64)
      names.push_back(experts::fingerprint(std::as_bytes(std::span(prompt).subspan(at, 64)),
                                           names.empty() ? 0 : names.back()));
    return names;
  }

  // States in a plain table: the one with the lowest rank, which is assigned when it is saved or used, is
  // evicted.
  template <class Rank>
  Counts run(std::size_t states, Rank&& rank, std::vector<std::uint64_t>* uses = nullptr) const {
    std::unordered_map<std::uint64_t, std::size_t> kept;      // rank by name
    std::set<std::pair<std::size_t, std::uint64_t>> by_rank;  // the same, lowest first
    std::set<std::uint64_t> known;                            // blocks that were ever read
    const auto keep = [&](std::uint64_t name, std::size_t now) {
      const auto [place, fresh] = kept.try_emplace(name);
      if (!fresh) by_rank.erase({place->second, name});
      place->second = rank(name, now);
      by_rank.insert({place->second, name});
    };
    Counts computed;
    for (std::size_t now = 0; now < trace_.size(); ++now) {
      const auto tokens = std::ssize(trace_[now]);
      const std::vector<std::uint64_t>& names = names_[now];
      std::size_t common = 0;
      std::size_t cached = 0;
      for (std::size_t block = 0; block < names.size(); ++block) {
        if (!known.insert(names[block]).second) common = block + 1;
        if (static_cast<std::int64_t>(block + 1) * 64 < tokens && kept.contains(names[block]))
          cached = block + 1;
      }
      if (cached > 0) keep(names[cached - 1], now);
      if (uses != nullptr) uses->push_back(cached > 0 ? names[cached - 1] : 0);
      const auto rows = static_cast<std::int64_t>(cached) * 64;
      computed.push_back(tokens - rows);
      for (const std::int64_t at : points_of(tokens, static_cast<std::int64_t>(common) * 64, rows, spacing_))
        keep(names[static_cast<std::size_t>(at / 64 - 1)], now);
      while (kept.size() > states) {
        kept.erase(by_rank.begin()->second);
        by_rank.erase(by_rank.begin());
      }
    }
    return computed;
  }

  const std::vector<Prompt>& trace_;
  std::int64_t spacing_;
  std::vector<std::vector<std::uint64_t>> names_;
  std::map<std::uint64_t, std::vector<std::size_t>> times_;  // of uses, by name
};

}  // namespace sluice::scheduler::prefix
