// Messages between nodes, and the watch that detects lost nodes.
#include <gtest/gtest.h>

#include <limits>

#include "expect_error.h"
#include "local_nodes.h"
#include "nodes/wire.h"

namespace sluice::nodes {
namespace {

using namespace std::chrono_literals;

// Busy machines may delay a thread by seconds.
Cluster::Options quick(std::function<void(const LostNode&)> lost = {},
                       std::chrono::milliseconds patience = 60s) {
  return {.lost = std::move(lost), .beat = 20ms, .patience = patience};
}

TEST(Cluster, CarriesMessagesInOrder) {
  constexpr int kNodes = 3;
  constexpr int kMessages = 200;
  Hub hub(kNodes);
  on_each_node(kNodes, [&](int rank) {
    Cluster cluster(std::make_unique<LocalTransport>(hub, rank), quick());
    const int previous = (rank + kNodes - 1) % kNodes;
    EXPECT_EQ(cluster.name(2), "node 2 (machine2)");
    for (int i = 0; i < kMessages; ++i) {
      Writer writer;
      writer.put(rank * 1000 + i);
      cluster.send((rank + 1) % kNodes, Channel::rows, writer.take());
    }
    for (int i = 0; i < kMessages; ++i) {
      const Message message = cluster.receive(previous, Channel::rows);
      EXPECT_EQ(Reader(message).get<int>(), previous * 1000 + i);
    }
  });
}

TEST(Cluster, DoesNotWaitForEverForANodeThatNeverCame) {
  Hub hub(2);
  expect_error(ErrorKind::resource, {"node 1 did not join within 0.2 s"},
               [&] { Cluster cluster(std::make_unique<LocalTransport>(hub, 0), {.meeting = 200ms}); });
}

TEST(Cluster, EverybodyHearsOfANodeThatIsSilent) {
  constexpr int kNodes = 3;
  Hub hub(kNodes);
  std::atomic<int> heard = 0;
  on_each_node(kNodes, [&](int rank) {
    const auto lost = [&](const LostNode& node) {
      EXPECT_EQ(node.rank, 1);
      EXPECT_FALSE(node.told);
      EXPECT_NE(node.sentence.find("node 1 (machine1) has been silent"), std::string::npos);
      ++heard;
    };
    Cluster cluster(std::make_unique<LocalTransport>(hub, rank),
                    quick(rank == 1 ? std::function<void(const LostNode&)>() : lost, 4s));
    if (rank == 1) {
      hub.silence(1);
      while (heard < kNodes - 1) std::this_thread::sleep_for(1ms);
      return;
    }
    expect_error(ErrorKind::resource, {"node 1 (machine1) has been silent"},
                 [&] { cluster.receive(1, Channel::rows); });
    expect_error(ErrorKind::resource, {"node 1"}, [&] { cluster.send(2 - rank, Channel::rows, {}); });
    while (heard < kNodes - 1) std::this_thread::sleep_for(1ms);
  });
  EXPECT_EQ(heard, kNodes - 1);
}

TEST(Cluster, EverybodyHearsWhyANodeFailed) {
  constexpr int kNodes = 3;
  Hub hub(kNodes);
  std::atomic<int> heard = 0;
  on_each_node(kNodes, [&](int rank) {
    Cluster cluster(std::make_unique<LocalTransport>(hub, rank), quick([&](const LostNode& node) {
                      EXPECT_EQ(node.rank, 2);
                      EXPECT_TRUE(node.told);
                      EXPECT_EQ(node.sentence, "node 2 (machine2): the disk is full");
                      ++heard;
                    }));
    if (rank == 2)
      cluster.give_up("the disk is full");
    else
      expect_error(ErrorKind::resource, {"the disk is full"}, [&] { cluster.receive(2, Channel::rows); });
    while (heard < kNodes - 1) std::this_thread::sleep_for(1ms);
  });
}

TEST(Cluster, NoOneWaitsForANodeThatParted) {
  Hub hub(2);
  on_each_node(2, [&](int rank) {
    Cluster cluster(std::make_unique<LocalTransport>(hub, rank),
                    quick([](const LostNode& node) { ADD_FAILURE() << node.sentence; }));
    if (rank == 1) return;
    expect_error(ErrorKind::resource, {"node 1 (machine1) ended before"},
                 [&] { cluster.receive(1, Channel::replies); });
  });
}

TEST(Cluster, TheFirstToPartWaitsForTheOthers) {
  Hub hub(2);
  on_each_node(2, [&](int rank) {
    Cluster cluster(std::make_unique<LocalTransport>(hub, rank),
                    quick([](const LostNode& node) { ADD_FAILURE() << node.sentence; }, 4s));
    if (rank == 0) std::this_thread::sleep_for(6s);
  });
}

// A large message takes a while to arrive.
class SlowTransport final : public LocalTransport {
 public:
  SlowTransport(Hub& hub, int rank, int polls) : LocalTransport(hub, rank), most_(polls) {}
  std::optional<Message> poll(int from, Channel channel) override {
    if (channel != Channel::rows) return LocalTransport::poll(from, channel);
    if (!message_) message_ = LocalTransport::poll(from, channel);
    if (!message_ || ++polls_ < most_) return std::nullopt;
    return std::exchange(message_, std::nullopt);
  }
  bool arriving(int, Channel channel) override { return channel == Channel::rows && message_.has_value(); }

 private:
  int most_;
  std::optional<Message> message_;
  int polls_ = 0;
};

TEST(Cluster, WhatANodeSentBeforeItPartedStillComes) {
  Hub hub(2);
  on_each_node(2, [&](int rank) {
    Cluster cluster(std::make_unique<SlowTransport>(hub, rank, 300), quick());
    if (rank == 1) return cluster.send(0, Channel::rows, Message(7));
    expect_error(ErrorKind::resource, {"node 1 (machine1) ended before"},
                 [&] { cluster.receive(1, Channel::replies); });
    EXPECT_EQ(cluster.receive(1, Channel::rows).size(), 7u);
    expect_error(ErrorKind::resource, {"node 1 (machine1) ended before"},
                 [&] { cluster.receive(1, Channel::rows); });
  });
}

TEST(Cluster, ANodeThatIsLostAfterItPartedIsNotWaitedFor) {
  Hub hub(2);
  on_each_node(2, [&](int rank) {
    Cluster cluster(std::make_unique<SlowTransport>(hub, rank, std::numeric_limits<int>::max()),
                    quick({}, 4s));
    if (rank == 1) return cluster.send(0, Channel::rows, Message(7));
    expect_error(ErrorKind::resource, {"node 1 (machine1) ended before"},
                 [&] { cluster.receive(1, Channel::replies); });
    hub.silence(1);
    expect_error(ErrorKind::resource, {"node 1 (machine1) has been silent"},
                 [&] { cluster.receive(1, Channel::rows); });
  });
}

TEST(Wire, GivesBackWhatWasPut) {
  Writer writer;
  writer.put(std::int64_t{7});
  writer.put(std::string("seven"));
  writer.put_all(std::span<const std::int32_t>());
  const Message message = writer.take();
  Reader reader(message);
  EXPECT_EQ(reader.get<std::int64_t>(), 7);
  EXPECT_EQ(reader.get_text(), "seven");
  EXPECT_TRUE(reader.get_all<std::int32_t>().empty());
  EXPECT_TRUE(reader.empty());
  expect_error(ErrorKind::internal, {"cut off"}, [&] { reader.get<char>(); });
  expect_error(ErrorKind::internal, {"cut off"}, [&] {
    Writer lies;
    lies.put(std::size_t{1} << 60);
    const Message short_one = lies.take();
    Reader(short_one).get_all<std::int64_t>();
  });
}

}  // namespace
}  // namespace sluice::nodes
