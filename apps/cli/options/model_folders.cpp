#include "options/model_folders.h"

#include <cstdlib>
#include <sstream>
#include <string>

namespace sluice::cli::options {

namespace {

namespace fs = std::filesystem;

// An absolute path from the environment, or empty.
fs::path folder_from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value == '/' ? fs::path(value) : fs::path();
}

fs::path at_home(const char* name, const char* fallback) {
  if (fs::path folder = folder_from_environment(name); !folder.empty()) return folder;
  const fs::path home = folder_from_environment("HOME");
  return home.empty() ? fs::path() : home / fallback;
}

}  // namespace

fs::path bundled_models() {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = binary.parent_path(); !folder.empty() && folder != folder.root_path();
       folder = folder.parent_path())
    for (const fs::path& place : {folder / "share/sluice/models", folder / "models"})
      if (fs::is_regular_file(place / "delta-story/config.json", error)) return place;
  return {};
}

fs::path own_models() {
  const fs::path data = at_home("XDG_DATA_HOME", ".local/share");
  return data.empty() ? data : data / "sluice/models";
}

fs::path unfinished_pull(const fs::path& folder) {
  return folder.parent_path() / ("." + folder.filename().string() + ".pull");
}

fs::path hub_cache() {
  if (fs::path cache = folder_from_environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  const fs::path home = at_home("HF_HOME", ".cache/huggingface");
  return home.empty() ? home : home / "hub";
}

std::vector<fs::path> model_folders() {
  std::vector<fs::path> folders;
  const char* named = std::getenv("SLUICE_MODELS");
  std::istringstream list(named != nullptr ? named : "");
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty()) folders.emplace_back(folder);
  for (fs::path& folder : std::vector{own_models(), bundled_models(), hub_cache()})
    if (!folder.empty()) folders.push_back(std::move(folder));
  return folders;
}

}  // namespace sluice::cli::options
