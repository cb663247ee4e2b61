#include "server/responses/store.h"

#include "server/api/api_error.h"

namespace sluice::server::responses {

namespace {

ApiError unknown(const std::string& id) {
  return not_found("Response with id '" + id + "' not found.");
}

}  // namespace

void Store::drop(std::map<Key, Entry>::iterator entry) {
  bytes_ -= entry->second.bytes;
  by_use_.erase(entry->second.used);
  entries_.erase(entry);
}

void Store::put(const std::string& client, const std::string& id, Stored stored) {
  // Parsed JSON takes several times the room of its text.
  constexpr std::uint64_t kFactor = 4;
  Entry entry;
  entry.bytes =
      kFactor * (dump(stored.response).size() + dump(stored.input).size() + dump(stored.messages).size());
  entry.stored = std::move(stored);
  const std::lock_guard lock(mutex_);
  if (entry.bytes > most_bytes_) return;
  const Key key{client, id};
  if (const auto old = entries_.find(key); old != entries_.end()) drop(old);
  while (bytes_ + entry.bytes > most_bytes_) drop(entries_.find(by_use_.back()));
  by_use_.push_front(key);
  entry.used = by_use_.begin();
  bytes_ += entry.bytes;
  entries_.emplace(key, std::move(entry));
}

Stored Store::get(const std::string& client, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find({client, id});
  if (entry == entries_.end()) throw unknown(id);
  by_use_.splice(by_use_.begin(), by_use_, entry->second.used);
  return entry->second.stored;
}

void Store::remove(const std::string& client, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find({client, id});
  if (entry == entries_.end()) throw unknown(id);
  drop(entry);
}

void Store::begin(const std::string& client, const std::string& id, std::function<void()> cancel) {
  const std::lock_guard lock(mutex_);
  running_[{client, id}] = std::move(cancel);
}

void Store::end(const std::string& client, const std::string& id) {
  const std::lock_guard lock(mutex_);
  running_.erase({client, id});
}

bool Store::cancel(const std::string& client, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find({client, id});
  if (found == running_.end()) return false;
  found->second();
  return true;
}

}  // namespace sluice::server::responses
