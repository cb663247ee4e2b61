// The page's conversations on the server's disk: one file each, in a folder per key.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>

#include "server/json.h"

namespace sluice::server::local {

class Conversations {
 public:
  // If the folder is empty, nothing is saved.
  explicit Conversations(std::filesystem::path folder);

  bool kept() const { return !folder_.empty(); }
  // All of these throw ApiError. `client` owns what it saves.
  Json list(const std::string& client) const;
  std::string load(const std::string& client, const std::string& id) const;
  void save(const std::string& client, const std::string& id, const Json& conversation);
  void remove(const std::string& client, const std::string& id);

 private:
  std::filesystem::path folder_of(const std::string& client) const;
  std::filesystem::path file_of(const std::string& client, const std::string& id) const;

  std::filesystem::path folder_;
  mutable std::mutex mutex_;
};

}  // namespace sluice::server::local
