// Which recurrent states to keep where there is little room: the tree's choice on made-up traces of
// conversations, beside the least recently used and one that knows the future.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "experts/fingerprint.h"
#include "scheduler/prefix/prefix_tree.h"

namespace sluice::scheduler {
namespace {

using Ids = std::vector<std::int32_t>;

// Pages are never scarce here.
class NoPages final : public PageOwner {
 public:
  std::int64_t rows() const override { return 256; }
  void hold(std::int32_t) override {}
  void drop(std::int32_t) override {}
  bool shared(std::int32_t) const override { return false; }
  SavedState save_block(std::int32_t, std::int64_t) override { return {}; }
  SavedState save_snapshot(std::int32_t) override { return {}; }
};

std::uint64_t name_of(const Ids& prompt, std::int64_t rows) {
  return experts::fingerprint(std::as_bytes(std::span(prompt)).first(static_cast<std::size_t>(rows) * 4));
}

// Users that share a few system prompts: some talk for long, some ask once, some edit what they said last.
struct Trace {
  const char* name;
  int systems;
  int users;
  double once;    // share of requests with no conversation behind them
  double edited;  // of conversations' turns
  int turn;       // tokens of a turn, in the mean
};

std::vector<Ids> make(const Trace& trace, int requests, std::mt19937& random) {
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  const auto chance = [&](double share) { return std::uniform_real_distribution<>()(random) < share; };
  const auto add = [&](Ids& to, int count) {
    for (; count > 0; --count) to.push_back(below(50'000));
  };
  std::vector<Ids> systems(static_cast<std::size_t>(trace.systems));
  for (Ids& system : systems) add(system, 500 + below(3500));
  std::vector<Ids> users(static_cast<std::size_t>(trace.users));
  std::vector<std::size_t> before(users.size());  // tokens before the last turn
  std::vector<Ids> all;
  while (static_cast<int>(all.size()) < requests) {
    Ids fresh = systems[random() % systems.size()];
    if (chance(trace.once)) {
      add(fresh, 1 + below(2 * trace.turn));
      all.push_back(std::move(fresh));
      continue;
    }
    // Few users ask most.
    const auto at =
        static_cast<std::size_t>(std::pow(trace.users, std::uniform_real_distribution<>()(random))) - 1;
    Ids& user = users[std::min(at, users.size() - 1)];
    if (user.empty() || user.size() > 30'000) user = fresh;
    if (chance(trace.edited)) user.resize(std::max(before[at], std::min<std::size_t>(user.size(), 500)));
    before[at] = user.size();
    add(user, 1 + below(2 * trace.turn));
    all.push_back(user);
  }
  return all;
}

// Where states are kept: as the scheduler does.
std::vector<std::int64_t> points_of(std::int64_t tokens, std::int64_t common, std::int64_t cached) {
  std::vector<std::int64_t> points = {common / 64 * 64, tokens / 64 * 64};
  for (std::int64_t at = 4096; at < tokens; at += 4096) points.push_back(at);
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  std::erase_if(points, [&](std::int64_t at) { return at <= cached; });
  return points;
}

std::int64_t computed_by_tree(const std::vector<Ids>& trace, std::uint64_t states) {
  NoPages pages;
  PrefixTree tree(pages, {.host_bytes = states, .nodes = std::size_t{1} << 30});
  const auto state = std::make_shared<const std::vector<std::byte>>(1);
  std::int64_t computed = 0;
  std::int32_t next_page = 0;
  for (const Ids& prompt : trace) {
    const auto tokens = static_cast<std::int64_t>(prompt.size());
    const PrefixTree::Match match = tree.find({}, prompt, tokens - 1);
    computed += tokens - match.rows;
    for (const std::int64_t rows : points_of(tokens, match.common, match.rows)) {
      std::vector<std::int32_t> used(static_cast<std::size_t>((rows + 255) / 256));
      for (std::int32_t& page : used) page = next_page++;
      tree.insert({}, prompt, rows, used, {.bytes = state});
    }
    tree.note({}, prompt);
  }
  return computed;
}

// The same with states in a plain table; who goes is the one with the least `rank`. Says of each request
// which state it used, if asked.
template <class Rank>
std::int64_t computed_with(const std::vector<Ids>& trace, std::uint64_t states, Rank&& rank,
                           std::vector<std::uint64_t>* uses = nullptr) {
  std::map<std::uint64_t, std::size_t> kept;  // when it was used last
  std::map<std::uint64_t, int> known;         // blocks that were read at some time
  std::int64_t computed = 0;
  for (std::size_t now = 0; now < trace.size(); ++now) {
    const Ids& prompt = trace[now];
    const auto tokens = static_cast<std::int64_t>(prompt.size());
    std::int64_t common = 0;
    std::int64_t cached = 0;
    std::uint64_t used = 0;
    for (std::int64_t rows = 64; rows <= tokens; rows += 64) {
      const std::uint64_t name = name_of(prompt, rows);
      if (known[name]++ > 0) common = rows;
      if (rows < tokens && kept.contains(name)) {
        cached = rows;
        used = name;
      }
    }
    if (used != 0) kept[used] = now;
    if (uses != nullptr) uses->push_back(used);
    computed += tokens - cached;
    for (const std::int64_t rows : points_of(tokens, common, cached)) kept[name_of(prompt, rows)] = now;
    while (kept.size() > states)
      kept.erase(std::min_element(kept.begin(), kept.end(), [&](const auto& a, const auto& b) {
        return rank(a.first, a.second, now) < rank(b.first, b.second, now);
      }));
  }
  return computed;
}

TEST(PrefixPolicy, ComputesLessThanTheLeastRecentlyUsedWould) {
  constexpr int kRequests = 250;
  const unsigned seed = 20;
  std::mt19937 random(seed);
  double tree_sum = 0;
  double lru_sum = 0;
  std::printf("%-14s %6s %10s %10s %10s %10s\n", "trace", "states", "all", "tree", "lru", "clairvoyant");
  for (const Trace& kind : {Trace{"chats", 3, 40, 0.1, 0.1, 400}, Trace{"one-shot", 20, 10, 0.8, 0.1, 200},
                            Trace{"agents", 2, 6, 0.05, 0.02, 900}, Trace{"edits", 5, 20, 0.2, 0.5, 300}}) {
    const std::vector<Ids> trace = make(kind, kRequests, random);
    std::int64_t all = 0;
    for (const Ids& prompt : trace) all += static_cast<std::int64_t>(prompt.size());
    // What is used when, were there room for everything.
    std::vector<std::uint64_t> uses;
    const auto oldest = [](std::uint64_t, std::size_t used, std::size_t) { return used; };
    computed_with(trace, std::numeric_limits<std::uint64_t>::max(), oldest, &uses);
    std::map<std::uint64_t, std::vector<std::size_t>> times;
    for (std::size_t i = 0; i < uses.size(); ++i) times[uses[i]].push_back(i);
    const auto never_or_last = [&](std::uint64_t name, std::size_t, std::size_t now) {
      const auto found = times.find(name);
      if (found == times.end()) return -std::numeric_limits<double>::infinity();
      const auto next = std::upper_bound(found->second.begin(), found->second.end(), now);
      return next == found->second.end() ? -std::numeric_limits<double>::infinity()
                                         : -static_cast<double>(*next);
    };
    for (const std::uint64_t states : {8, 24, 72}) {
      const std::int64_t tree = computed_by_tree(trace, states);
      const std::int64_t lru = computed_with(trace, states, oldest);
      const std::int64_t best = computed_with(trace, states, never_or_last);
      std::printf("%-14s %6d %10ld %10ld %10ld %10ld\n", kind.name, static_cast<int>(states),
                  static_cast<long>(all), static_cast<long>(tree), static_cast<long>(lru),
                  static_cast<long>(best));
      EXPECT_LT(tree, all);
      tree_sum += static_cast<double>(tree) / static_cast<double>(all);
      lru_sum += static_cast<double>(lru) / static_cast<double>(all);
    }
  }
  EXPECT_LT(tree_sum, lru_sum);
}

}  // namespace
}  // namespace sluice::scheduler
