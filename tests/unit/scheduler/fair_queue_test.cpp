#include "scheduler/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>

#include "expect_error.h"
#include "printed_seed.h"

namespace sluice::scheduler {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
const Clock::time_point kStart{};

Waiting request(std::uint64_t id, const std::string& key, std::int64_t cost = 100,
                Clock::time_point arrived = kStart) {
  Waiting waiting;
  waiting.id = id;
  waiting.key = key;
  waiting.cost = cost;
  waiting.arrived = arrived;
  return waiting;
}

std::vector<std::uint64_t> drain(FairQueue& queue, Clock::time_point now = kStart) {
  std::vector<std::uint64_t> ids;
  while (const auto next = queue.pop(now, kAny)) ids.push_back(next->id);
  return ids;
}

TEST(FairQueue, OneKeyIsServedInOrderOfArrival) {
  FairQueue queue({});
  for (std::uint64_t id = 0; id < 5; ++id) queue.push(request(id, "a", 100, kStart + 1s * id));
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_FALSE(queue.pop(kStart, kAny).has_value());
}

TEST(FairQueue, AFloodDoesNotDelayOthers) {
  FairQueue queue({.quantum = 100});
  for (std::uint64_t id = 0; id < 50; ++id) queue.push(request(id, "flood"));
  queue.push(request(100, "light"));
  queue.push(request(101, "light"));
  const auto order = drain(queue);
  ASSERT_EQ(order.size(), 52u);
  const auto place = [&](std::uint64_t id) {
    return std::find(order.begin(), order.end(), id) - order.begin();
  };
  EXPECT_LE(place(100), 1);
  EXPECT_LE(place(101), 3);
}

// Whatever the requests cost, keys with waiting requests get the same number of tokens.
TEST(FairQueue, KeysShareTokensNotRequests) {
  std::mt19937 random(printed_seed());
  FairQueue queue({.capacity = 100000, .quantum = 256});
  const std::map<std::string, std::int64_t> typical = {{"long", 8000}, {"middle", 900}, {"short", 60}};
  std::map<std::string, std::int64_t> served;
  const auto add = [&](const std::string& key) {
    const auto most = static_cast<unsigned>(2 * typical.at(key));
    queue.push(request(0, key, 1 + static_cast<std::int64_t>(random() % most)));
  };
  for (const auto& [key, cost] : typical)
    for (int i = 0; i < 3; ++i) add(key);
  for (int i = 0; i < 20000; ++i) {
    const auto next = queue.pop(kStart, kAny);
    ASSERT_TRUE(next.has_value());
    served[next->key] += next->cost;
    add(next->key);
  }
  for (const auto& [key, cost] : typical) {
    const std::int64_t tokens = served[key];
    EXPECT_LE(std::abs(tokens - served["middle"]), 2 * 16000) << key;
    EXPECT_GT(tokens, 100000) << key;
  }
}

TEST(FairQueue, PrioritiesComeFirstAndWaitingRaisesThem) {
  FairQueue queue({.ageing = 10s});
  Waiting urgent = request(1, "urgent");
  urgent.priority = 2;
  queue.push(request(0, "plain"));
  queue.push(urgent);
  EXPECT_EQ(queue.pop(kStart + 1s, kAny)->id, 1u);
  // Urgent requests keep arriving: after a little over 20 s the plain one has the same level and an earlier
  // turn.
  int before = 0;
  for (int second = 2; second < 60; ++second) {
    urgent.arrived = kStart + 1s * second;
    queue.push(urgent);
    if (queue.pop(kStart + 1s * second, kAny)->id == 0) break;
    ++before;
  }
  EXPECT_GE(before, 15);
  EXPECT_LE(before, 31);
}

TEST(FairQueue, AKeyPutsItsOwnUrgentRequestsFirst) {
  FairQueue queue({.ageing = 10s});
  queue.push(request(0, "a", 100, kStart));
  Waiting urgent = request(1, "a", 100, kStart + 5s);
  urgent.priority = 1;
  queue.push(urgent);
  Waiting late = request(2, "a", 100, kStart + 30s);
  late.priority = 1;
  queue.push(late);
  EXPECT_EQ(drain(queue, kStart + 30s), (std::vector<std::uint64_t>{1, 0, 2}));
}

TEST(FairQueue, AFullQueueRefuses) {
  FairQueue queue({.capacity = 2});
  queue.push(request(0, "a"));
  queue.push(request(1, "b"));
  expect_error(ErrorKind::busy, {"full", "2"}, [&] { queue.push(request(2, "c")); });
  const auto taken = queue.pop(kStart, kAny);
  queue.push(request(3, "c"));
  queue.put_back(*taken);  // an admitted request is not lost
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(drain(queue).size(), 3u);
}

TEST(FairQueue, WhatWasPutBackIsNext) {
  FairQueue queue({.quantum = 100});
  for (std::uint64_t id = 0; id < 4; ++id) queue.push(request(id, "a", 1000));
  const auto taken = queue.pop(kStart, kAny);
  EXPECT_EQ(taken->id, 0u);
  queue.put_back(*taken);
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

TEST(FairQueue, NoRequestOvertakesOneThatDoesNotFitYet) {
  FairQueue queue({});
  queue.push(request(0, "a", 5000));
  queue.push(request(1, "a", 10, kStart + 1s));
  EXPECT_FALSE(queue.pop(kStart + 1s, 4999).has_value());
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.pop(kStart + 1s, 5000)->id, 0u);
}

TEST(FairQueue, DropsWhatWasCancelledOrIsTooLate) {
  FairQueue queue({});
  const Waiting cancelled = request(0, "a");
  Waiting late = request(1, "b");
  late.deadline = kStart + 5s;
  queue.push(cancelled);
  queue.push(late);
  queue.push(request(2, "a"));
  EXPECT_TRUE(queue.drop(kStart).empty());
  cancelled.cancel.cancel();  // the copy in the queue shares the flag
  const auto first = queue.drop(kStart + 4s);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].id, 0u);
  const auto second = queue.drop(kStart + 5s);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].id, 1u);
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{2}));
}

TEST(FairQueue, RefusesOptionsThatMakeNoSense) {
  expect_error(ErrorKind::input, {"capacity"}, [] { FairQueue queue({.capacity = 0}); });
  expect_error(ErrorKind::input, {"quantum"}, [] { FairQueue queue({.quantum = 0}); });
  expect_error(ErrorKind::input, {"ageing"}, [] { FairQueue queue({.ageing = 0s}); });
}

}  // namespace
}  // namespace sluice::scheduler
