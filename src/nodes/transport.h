// Messages between the nodes that hold a model together.
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

// Any threads may use it at once; nothing waits.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;  // of this node, from 0
  virtual int size() const = 0;
  virtual std::string host() const = 0;

  // Hands a message over. Those of one channel between two nodes arrive in their order.
  virtual void send(int to, Channel channel, Message message) = 0;
  // The next message, if one is there.
  virtual std::optional<Message> poll(int from, Channel channel) = 0;
  // Whether some of the next one is there, as poll() found last: a large one takes a while.
  virtual bool arriving(int from, Channel channel) = 0;
  // Moves on what was handed over, and says how many messages have not left yet.
  virtual std::size_t progress() = 0;
  // An orderly end, together with all others. Without it, nobody is waited for.
  virtual void close() = 0;
};

// The nodes that mpirun started; one alone where it did not.
std::unique_ptr<Transport> join_mpi();

}  // namespace sluice::nodes
