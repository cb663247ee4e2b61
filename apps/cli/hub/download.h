// Downloads the files of a model: continues interrupted downloads, and verifies every byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "hub/repository.h"

namespace sluice::cli::hub {

struct DownloadProgress {
  std::uint64_t done = 0;  // bytes that are present
  std::uint64_t all = 0;
  std::string file;
};

class Download {
 public:
  Download(Host host, Repository repository, std::function<void(const DownloadProgress&)> show);

  // Whether the folder has every file as on the hub.
  bool is_whole(const std::filesystem::path& folder);
  // Downloads what the folder lacks. Returns the number of bytes received.
  std::uint64_t fill(const std::filesystem::path& folder);

 private:
  bool is_there(const std::filesystem::path& path, const RemoteFile& file);
  void get(const std::filesystem::path& folder, const RemoteFile& file);
  // One attempt to download what is missing. Returns what went wrong, or nothing.
  std::string get_rest(const std::filesystem::path& part, const RemoteFile& file);
  void add(std::uint64_t bytes, const RemoteFile& file);

  Host host_;
  Repository repository_;
  std::function<void(const DownloadProgress&)> show_;
  DownloadProgress progress_;
  std::uint64_t received_ = 0;
};

}  // namespace sluice::cli::hub
