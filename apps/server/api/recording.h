// The events of an answer that continues without its client, for clients that come back.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace sluice::server::api {

// Limit of the bytes of all recordings together.
struct RecordingRoom {
  explicit RecordingRoom(std::uint64_t bytes) : most(bytes) {}

  const std::uint64_t most;
  std::atomic<std::uint64_t> used = 0;
};

// Callable from any thread.
class Recording {
 public:
  explicit Recording(std::shared_ptr<RecordingRoom> room) : room_(std::move(room)) {}
  ~Recording() { room_->used -= bytes_; }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Adds complete server-sent events. If there is no more room, the oldest of this recording are dropped.
  void add(std::string_view events);
  // Nothing more will be added.
  void end();

  // The events from a number on.
  struct Rest {
    std::string events;
    std::int64_t next = 0;  // the number after them
    bool over = false;      // no more events follow
  };
  Rest from(std::int64_t number) const;
  // The number of the first event that is still present.
  std::int64_t first() const;

  // Calls `news` after every change, on the thread that makes it, as long as the listener exists.
  class Listener;
  std::unique_ptr<Listener> listen(std::function<void()> news);

 private:
  void tell();  // called with the lock held

  const std::shared_ptr<RecordingRoom> room_;
  mutable std::mutex mutex_;  // guards the members below
  std::deque<std::string> events_;
  std::int64_t first_ = 0;
  std::uint64_t bytes_ = 0;
  bool over_ = false;
  std::list<std::function<void()>> listeners_;
};

class Recording::Listener {
 public:
  Listener(Recording& recording, std::list<std::function<void()>>::iterator place)
      : recording_(recording), place_(place) {}
  ~Listener() {
    const std::lock_guard lock(recording_.mutex_);
    recording_.listeners_.erase(place_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  Recording& recording_;
  std::list<std::function<void()>>::iterator place_;
};

}  // namespace sluice::server::api
