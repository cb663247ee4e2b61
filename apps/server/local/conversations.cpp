#include "server/local/conversations.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "server/api_error.h"

namespace sluice::server::local {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLongestId = 64;
constexpr std::size_t kMost = 10'000;  // conversations per client

// File names come from clients, so they must not lead elsewhere.
bool is_id(const std::string& id) {
  const auto harmless = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  return !id.empty() && id.size() <= kLongestId && std::all_of(id.begin(), id.end(), harmless);
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw not_found("There is no such conversation.");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Conversations::Conversations(fs::path folder) : folder_(std::move(folder)) {}

fs::path Conversations::folder_of(const std::string& client) const {
  if (!kept()) throw not_found("Conversations are not kept on this server; --data keeps them.");
  // Without keys, all clients share one folder.
  return folder_ / (client.starts_with("key-") ? client : "shared");
}

fs::path Conversations::file_of(const std::string& client, const std::string& id) const {
  if (!is_id(id)) throw bad_request("The name of a conversation has up to 64 letters, digits, - and _.");
  return folder_of(client) / (id + ".json");
}

Json Conversations::list(const std::string& client) const {
  const std::lock_guard lock(mutex_);
  Json data = Json::array();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_of(client), error)) {
    if (entry.path().extension() != ".json") continue;
    const Json one = Json::parse(read(entry.path()), nullptr, false);
    if (!one.is_object()) continue;
    data.push_back({{"id", entry.path().stem().string()},
                    {"title", one.value("title", Json())},
                    {"updated", one.value("updated", Json())}});
  }
  return {{"object", "list"}, {"data", data}};
}

std::string Conversations::load(const std::string& client, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return read(file_of(client, id));
}

void Conversations::save(const std::string& client, const std::string& id, const Json& conversation) {
  const std::lock_guard lock(mutex_);
  const fs::path path = file_of(client, id);
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const auto count =
      std::distance(fs::directory_iterator(path.parent_path(), error), fs::directory_iterator());
  if (static_cast<std::size_t>(count) >= kMost && !fs::exists(path, error))
    throw bad_request("There are too many conversations; remove some.");
  // Written atomically.
  const fs::path fresh = path.string() + ".new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << dump(conversation);
  file.close();
  if (file) fs::rename(fresh, path, error);
  if (!file || error) throw ApiError(500, "server_error", "The conversation could not be saved.");
}

void Conversations::remove(const std::string& client, const std::string& id) {
  const std::lock_guard lock(mutex_);
  std::error_code error;
  if (!fs::remove(file_of(client, id), error)) throw not_found("There is no such conversation.");
}

}  // namespace sluice::server::local
