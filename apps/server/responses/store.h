// Responses that clients may request again or continue, per key and up to a total size.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/api/recording.h"
#include "server/json.h"

namespace sluice::server::responses {

struct Stored {
  Json response;  // as it was sent
  Json input;     // the items of the request
  Json messages;  // the conversation up to here, in the template's form, without instructions
  std::shared_ptr<api::Recording> recording = nullptr;  // of its events, if it ran in the background
};

// A response that is being generated. The functions may be called until it has ended.
struct RunningResponse {
  std::function<void()> cancel;
  std::function<Stored()> look;  // returns its current contents
};

class Store {
 public:
  explicit Store(std::uint64_t most_bytes)
      : most_bytes_(most_bytes), recordings_(std::make_shared<api::RecordingRoom>(most_bytes)) {}

  // If there is no more room, the least recently used are dropped.
  void put(const std::string& client, const std::string& id, Stored stored);
  // These throw 404 if the client has no such response. A response that is being generated is returned with
  // its current contents; removing it cancels it.
  Stored get(const std::string& client, const std::string& id);
  Stored show(const std::string& client, const std::string& id);
  void remove(const std::string& client, const std::string& id);

  void begin(const std::string& client, const std::string& id, RunningResponse running);
  void end(const std::string& client, const std::string& id);
  // Returns its current contents, or nothing if it is not being generated.
  std::optional<Stored> cancel(const std::string& client, const std::string& id);
  void cancel_all();

  // The total size of recordings is limited, too.
  std::shared_ptr<api::Recording> record() const { return std::make_shared<api::Recording>(recordings_); }

 private:
  using Key = std::pair<std::string, std::string>;
  struct Entry {
    Stored stored;
    std::uint64_t bytes = 0;
    std::list<Key>::iterator used;
  };

  void drop(std::map<Key, Entry>::iterator entry);

  const std::uint64_t most_bytes_;
  std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::list<Key> by_use_;  // most recently used first
  std::uint64_t bytes_ = 0;
  struct Running {
    RunningResponse response;
    bool removed = false;    // not to be stored when it is done
    bool cancelled = false;  // reported as cancelled, though its step is not over
  };
  std::map<Key, Running> running_;
  const std::shared_ptr<api::RecordingRoom> recordings_;
};

}  // namespace sluice::server::responses
