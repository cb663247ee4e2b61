// The nodes that work together, and the watch thread of each: it sends a heartbeat twice a second and listens
// for those of the others. A node that is silent for too long, or reports a failure, is lost, and the model
// with it: every node is told, and all waiting ends.
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
    // Called once, on the watch thread, when a node is lost.
    std::function<void(const LostNode& node)> lost = {};
    std::chrono::milliseconds beat{500};
    std::chrono::milliseconds patience{5000};  // how long a node may be silent
    std::chrono::milliseconds meeting{10000};  // how long to wait for a node to join
  };
  Cluster(std::unique_ptr<Transport> transport, Options options);
  // Parts in order once all others do, unless a node was lost.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  // "node 1 (host)".
  std::string name(int rank) const;
  // Where each node runs.
  const std::vector<std::string>& hosts() const { return hosts_; }

  // These throw if a node is lost.
  void send(int to, Channel channel, Message message);
  // Waits for the next message.
  Message receive(int from, Channel channel);
  // The same for bytes that may exceed the largest message; both sides know their number.
  void send_bytes(int to, Channel channel, std::span<const std::byte> bytes);
  void receive_bytes(int from, Channel channel, std::span<std::byte> bytes);

  // Tells the others that this node cannot go on, and why.
  void give_up(const std::string& why) noexcept;
  // For an end whose reason all nodes already know: suppresses give_up().
  void end_together() { told_ = true; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Beat : std::uint8_t { alive, failed, lost, parting };
  struct Peer {
    Clock::time_point heard;           // used by the watch thread only
    std::atomic<bool> parted = false;  // it has no more to send
  };

  void meet();
  void part();
  void watch();
  void hear();
  void hear(int rank, const Message& message);
  void look_for_silence(Clock::time_point now);
  void lose(const LostNode& node);
  // `about` is the node that the text is about.
  void tell_all(Beat beat, const std::string& text, int about);
  void wait_until_told(std::chrono::milliseconds most);
  void refuse_if_lost() const;
  Peer& peer(int rank) { return peers_[to_size(rank)]; }
  // A node that parted keeps sending heartbeats and listening until all others part.
  bool is_done_with(int other) { return parted_ && peer(other).parted; }

  std::unique_ptr<Transport> transport_;
  Options options_;
  std::vector<std::string> hosts_;
  std::vector<Peer> peers_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::string lost_;  // why, once a node is lost
  std::atomic<bool> is_lost_ = false;
  std::atomic<bool> told_ = false;    // the others were told why this node ends
  std::atomic<bool> parted_ = false;  // this node has sent everything
  std::thread watch_;                 // last, because it uses the others
};

}  // namespace sluice::nodes
