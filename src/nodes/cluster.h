// The nodes that work together, and the watch that each keeps over the others: a thread tells them twice a
// second that this one lives. Who is silent for too long, or says that it failed, is lost, and with it the
// model: every node hears of it, and nobody waits any longer.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <thread>

#include "base/integer_cast.h"
#include "nodes/transport.h"
#include "sluice/nodes.h"

namespace sluice::nodes {

class Cluster {
 public:
  struct Options {
    // Hears once, on the thread that keeps watch, what happened to which node.
    std::function<void(const LostNode& node)> lost = {};
    std::chrono::milliseconds beat{500};
    std::chrono::milliseconds patience{5000};  // with a node that is silent
    std::chrono::milliseconds meeting{10000};  // with one that has not come
  };
  Cluster(std::unique_ptr<Transport> transport, Options options);
  // Parts in order, once all others do, unless a node was lost.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  // "node 1 (host)".
  std::string name(int rank) const;
  // Where each node runs.
  const std::vector<std::string>& hosts() const { return hosts_; }

  // Throw where a node is lost.
  void send(int to, Channel channel, Message message);
  // Waits for the next message.
  Message receive(int from, Channel channel);
  // The same for bytes that may be more than one message can hold; both sides know how many they are.
  void send_bytes(int to, Channel channel, std::span<const std::byte> bytes);
  void receive_bytes(int from, Channel channel, std::span<std::byte> bytes);

  // Tells the others that this node cannot go on, and why.
  void give_up(const std::string& why) noexcept;
  // All know already why they end.
  void end_together() { told_ = true; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Beat : std::uint8_t { alive, failed, lost, parting };
  struct Peer {
    Clock::time_point heard;           // of the watch alone
    std::atomic<bool> parted = false;  // it has no more to send
  };

  void meet();
  void part();
  void watch();
  void hear();
  void hear(int rank, const Message& message);
  void look_for_silence(Clock::time_point now);
  void lose(const LostNode& node);
  // `about` is the node of which the text speaks.
  void tell_all(Beat beat, const std::string& text, int about);
  void wait_until_told(std::chrono::milliseconds most);
  void refuse_if_lost() const;
  Peer& peer(int rank) { return peers_[to_size(rank)]; }
  // Whoever parted first still lives and listens until the others part, too.
  bool is_done_with(int other) { return parted_ && peer(other).parted; }

  std::unique_ptr<Transport> transport_;
  Options options_;
  std::vector<std::string> hosts_;
  std::vector<Peer> peers_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::string lost_;  // what happened
  std::atomic<bool> is_lost_ = false;
  std::atomic<bool> told_ = false;    // why this node ends
  std::atomic<bool> parted_ = false;  // all was sent
  std::thread watch_;                 // last: it uses the others
};

}  // namespace sluice::nodes
