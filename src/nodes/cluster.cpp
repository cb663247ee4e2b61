#include "nodes/cluster.h"

#include <algorithm>

#include "base/error.h"
#include "base/integer_cast.h"
#include "nodes/wire.h"

namespace sluice::nodes {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kLargest = std::size_t{256} << 20;  // bytes per message; MPI counts bytes in an int

// Waits longer the longer nothing arrives: expected rows arrive within microseconds, and idle nodes leave the
// processor to others.
class Patience {
 public:
  void wait() {
    const auto waited = std::chrono::steady_clock::now() - start_;
    if (waited < 100us)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(waited < 10ms ? 20us : waited < 1s ? 100us : 1000us);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Cluster::Cluster(std::unique_ptr<Transport> transport, Options options)
    : transport_(std::move(transport)),
      options_(std::move(options)),
      hosts_(to_size(size())),
      peers_(to_size(size())) {
  meet();
  for (Peer& peer : peers_) peer.heard = Clock::now();
  watch_ = std::thread([this] { watch(); });
}

Cluster::~Cluster() {
  part();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  watch_.join();
  if (is_lost_) return;
  try {
    transport_->close();
  } catch (const Error&) {  // a node left without parting
  }
}

// Waits until all others part too: closing a transport may block forever if a node is lost in the meantime.
void Cluster::part() {
  if (is_lost_) return;
  parted_ = true;
  try {
    tell_all(Beat::parting, {}, rank());
  } catch (const Error&) {  // the watch notices an unreachable node by its silence
  }
  const auto all_parted = [this] {
    for (int other = 0; other < size(); ++other)
      if (other != rank() && !peer(other).parted) return false;
    return true;
  };
  for (Patience patience; !is_lost_ && !all_parted();) patience.wait();
}

// Every node sends its name to every other.
void Cluster::meet() {
  const Clock::time_point start = Clock::now();
  hosts_[to_size(rank())] = transport_->host();
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    Writer writer;
    writer.put(transport_->host());
    transport_->send(other, Channel::replies, writer.take());
  }
  for (int other = 0; other < size(); ++other)
    if (other != rank()) {
      Patience patience;
      std::optional<Message> message;
      while (!(message = transport_->poll(other, Channel::replies))) {
        if (Clock::now() - start > options_.meeting)
          fail(ErrorKind::resource, "node {} did not join within {} s", other,
               std::chrono::duration<double>(options_.meeting).count());
        transport_->progress();
        patience.wait();
      }
      hosts_[to_size(other)] = Reader(*message).get_text();
    }
}

std::string Cluster::name(int rank) const {
  return fmt::format("node {} ({})", rank, hosts_[to_size(rank)]);
}

void Cluster::refuse_if_lost() const {
  if (!is_lost_) return;
  const std::lock_guard lock(mutex_);
  throw Error(ErrorKind::resource, lost_);
}

void Cluster::send(int to, Channel channel, Message message) {
  refuse_if_lost();
  transport_->send(to, channel, std::move(message));
}

Message Cluster::receive(int from, Channel channel) {
  for (Patience patience;;) {
    const bool parted = peer(from).parted;
    if (std::optional<Message> message = transport_->poll(from, channel)) return std::move(*message);
    // Messages sent before it parted may still be in flight.
    if (parted && !transport_->arriving(from, channel))
      fail(ErrorKind::resource, "{} ended before its work was done", name(from));
    refuse_if_lost();
    transport_->progress();
    patience.wait();
  }
}

void Cluster::send_bytes(int to, Channel channel, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(kLargest, bytes.size()));
    send(to, channel, Message(part.begin(), part.end()));
    bytes = bytes.subspan(part.size());
  }
}

void Cluster::receive_bytes(int from, Channel channel, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const Message part = receive(from, channel);
    if (part.size() != std::min(kLargest, bytes.size()))
      fail(ErrorKind::internal, "{} sent {} bytes instead of {}", name(from), part.size(), bytes.size());
    std::copy(part.begin(), part.end(), bytes.begin());
    bytes = bytes.subspan(part.size());
  }
}

void Cluster::tell_all(Beat beat, const std::string& text, int about) {
  for (int other = 0; other < size(); ++other) {
    if (other == rank() || (beat == Beat::alive && is_done_with(other))) continue;
    Writer writer;
    writer.put(beat);
    writer.put(about);
    writer.put(text);
    transport_->send(other, Channel::beats, writer.take());
  }
}

void Cluster::wait_until_told(std::chrono::milliseconds most) {
  for (const auto start = Clock::now(); transport_->progress() > 0 && Clock::now() - start < most;)
    std::this_thread::sleep_for(1ms);
}

void Cluster::give_up(const std::string& why) noexcept try {
  if (is_lost_ || told_.exchange(true)) return;
  {
    const std::lock_guard lock(mutex_);
    lost_ = why;
    is_lost_ = true;
  }
  tell_all(Beat::failed, fmt::format("{}: {}", name(rank()), why), rank());
  wait_until_told(1s);
} catch (const std::exception&) {  // then the others notice the silence
}

void Cluster::lose(const LostNode& node) {
  {
    const std::lock_guard lock(mutex_);
    if (is_lost_) return;
    lost_ = node.sentence;
    is_lost_ = true;
  }
  if (!node.told) try {  // so that all nodes report the same cause, and none blames this node's exit
      tell_all(Beat::lost, node.sentence, node.rank);
      wait_until_told(200ms);
    } catch (const Error&) {  // then the others notice for themselves
    }
  if (options_.lost) options_.lost(node);
}

void Cluster::hear(int rank, const Message& message) {
  Reader reader(message);
  const auto beat = reader.get<Beat>();
  const int about = reader.get<int>();
  peer(rank).heard = Clock::now();
  if (beat == Beat::parting) peer(rank).parted = true;
  if (beat == Beat::failed || beat == Beat::lost) lose({about, beat == Beat::failed, reader.get_text()});
}

void Cluster::hear() {
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    try {
      while (const std::optional<Message> message = transport_->poll(other, Channel::beats))
        hear(other, *message);
    } catch (const Error& error) {
      lose({other, false, fmt::format("{} is gone: {}", name(other), error.what())});
    }
  }
}

void Cluster::look_for_silence(Clock::time_point now) {
  for (int other = 0; other < size(); ++other) {
    if (other == rank() || is_done_with(other) || now - peer(other).heard < options_.patience) continue;
    const double seconds = std::chrono::duration<double>(now - peer(other).heard).count();
    lose({other, false,
          fmt::format("{} has been silent for {:.0f} s: it stopped or cannot be reached", name(other),
                      seconds)});
  }
}

void Cluster::watch() {
  Clock::time_point last = Clock::now();
  Clock::time_point told{};
  std::unique_lock lock(mutex_);
  while (!stopping_ && !is_lost_) {
    lock.unlock();
    const Clock::time_point now = Clock::now();
    // If this process itself was stopped, it heard nobody in that time; extend everyone's deadline by it, but
    // keep the silence from before.
    if (now - last > options_.patience / 2)
      for (Peer& peer : peers_) peer.heard += now - last;
    last = now;
    std::size_t leaving = 0;
    try {
      if (now - told >= options_.beat) {
        tell_all(Beat::alive, {}, rank());
        told = now;
      }
      leaving = transport_->progress();
    } catch (const Error&) {  // the watch notices an unreachable node by its silence
    }
    hear();
    look_for_silence(now);
    lock.lock();
    changed_.wait_for(lock, leaving > 0 ? 1ms : 20ms, [this] { return stopping_; });
  }
}

}  // namespace sluice::nodes
