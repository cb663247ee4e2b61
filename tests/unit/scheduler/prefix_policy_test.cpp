// Which recurrent states to keep if there is little room: the tree's choice on synthetic traces of
// conversations, compared with least recently used and one that knows the future.
#include "policy_simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace sluice::scheduler::prefix {
namespace {

using Ids = Prompt;

// Users that share a few system prompts: some have long conversations, some ask once, some edit their last
// message.
struct Trace {
  const char* name;
  int systems;
  int users;
  double once;    // fraction of single requests
  double edited;  // fraction of edited turns
  int turn;       // mean tokens per turn
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
    // A few users send most requests.
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
    const PolicySimulation simulation(trace);
    const auto sum = [](const PolicySimulation::Counts& counts) {
      return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    };
    for (const std::size_t states : {8, 24, 72}) {
      const std::int64_t tree = sum(simulation.by_tree(states));
      const std::int64_t lru = sum(simulation.by_age(states));
      const std::int64_t best = sum(simulation.clairvoyant(states));
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
}  // namespace sluice::scheduler::prefix
