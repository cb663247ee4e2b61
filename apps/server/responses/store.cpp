#include "server/responses/store.h"

#include "server/api_error.h"

namespace sluice::server::responses {

namespace {

ApiError unknown(const std::string& id) {
  return not_found("Response with id '" + id + "' not found.");
}

Stored as_cancelled(Stored stored) {
  stored.response["status"] = "cancelled";
  return stored;
}

}  // namespace

void Store::drop(std::map<Key, Entry>::iterator entry) {
  bytes_ -= entry->second.bytes;
  by_use_.erase(entry->second.used);
  entries_.erase(entry);
}

void Store::put(const std::string& client, const std::string& id, Stored stored) {
  // Parsed JSON takes several times the memory of its text.
  constexpr std::uint64_t kFactor = 4;
  const Key key{client, id};
  Entry entry;
  entry.bytes =
      kFactor * (dump(stored.response).size() + dump(stored.input).size() + dump(stored.messages).size());
  entry.stored = std::move(stored);
  const std::lock_guard lock(mutex_);
  if (entry.bytes > most_bytes_) return;
  if (const auto running = running_.find(key); running != running_.end()) {
    if (running->second.removed) return;
    if (running->second.cancelled) entry.stored = as_cancelled(std::move(entry.stored));
  }
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

Stored Store::show(const std::string& client, const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    const Key key{client, id};
    const auto running = running_.find(key);
    if (running != running_.end() && !running->second.removed && !entries_.contains(key)) {
      Stored shown = running->second.response.look();
      return running->second.cancelled ? as_cancelled(std::move(shown)) : shown;
    }
  }
  return get(client, id);
}

void Store::remove(const std::string& client, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const Key key{client, id};
  const auto entry = entries_.find(key);
  const auto running = running_.find(key);
  const bool runs = running != running_.end() && !running->second.removed;
  if (entry == entries_.end() && !runs) throw unknown(id);
  if (entry != entries_.end()) drop(entry);
  if (!runs) return;
  running->second.removed = true;
  running->second.response.cancel();
}

void Store::begin(const std::string& client, const std::string& id, RunningResponse running) {
  const std::lock_guard lock(mutex_);
  running_[{client, id}] = {std::move(running)};
}

void Store::end(const std::string& client, const std::string& id) {
  const std::lock_guard lock(mutex_);
  running_.erase({client, id});
}

std::optional<Stored> Store::cancel(const std::string& client, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const Key key{client, id};
  const auto running = running_.find(key);
  if (running == running_.end() || running->second.removed || entries_.contains(key)) return {};
  running->second.response.cancel();
  running->second.cancelled = true;
  return as_cancelled(running->second.response.look());
}

void Store::cancel_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, running] : running_) running.response.cancel();
}

}  // namespace sluice::server::responses
