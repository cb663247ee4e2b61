// Responses that clients may ask for again or continue, per key and up to so many bytes in all.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/api/json.h"

namespace sluice::server::responses {

struct Stored {
  Json response;  // as it was sent
  Json input;     // the items that were asked
  Json messages;  // the conversation up to here, in the template's form, without instructions
};

class Store {
 public:
  explicit Store(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Those not used for longest go where there is no more room.
  void put(const std::string& client, const std::string& id, Stored stored);
  // Throw 404 where the client has no such response.
  Stored get(const std::string& client, const std::string& id);
  void remove(const std::string& client, const std::string& id);

  // Running responses can be cancelled until they are done.
  void begin(const std::string& client, const std::string& id, std::function<void()> cancel);
  void end(const std::string& client, const std::string& id);
  bool cancel(const std::string& client, const std::string& id);

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
  std::list<Key> by_use_;  // the latest first
  std::uint64_t bytes_ = 0;
  std::map<Key, std::function<void()>> running_;
};

}  // namespace sluice::server::responses
