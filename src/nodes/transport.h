// Messages between the nodes that share a model.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::nodes {

using Message = std::vector<std::byte>;

enum class Channel { commands, rows, replies, beats };
inline constexpr int kChannels = 4;

// Safe for use by any threads at once; no call blocks.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;  // of this node, from 0
  virtual int size() const = 0;
  virtual std::string host() const = 0;

  // Queues a message. Messages of one channel between two nodes arrive in order.
  virtual void send(int to, Channel channel, Message message) = 0;
  // The next message, if one is there.
  virtual std::optional<Message> poll(int from, Channel channel) = 0;
  // Whether a part of the next message has arrived, as of the last poll(): a large one takes a while.
  virtual bool arriving(int from, Channel channel) = 0;
  // Advances queued messages and returns how many have not left yet.
  virtual std::size_t progress() = 0;
  // An orderly shutdown together with all others. Without it, the process waits for no one.
  virtual void close() = 0;
};

// Joins the nodes that mpirun started; a single node without mpirun.
std::unique_ptr<Transport> join_mpi();

}  // namespace sluice::nodes
