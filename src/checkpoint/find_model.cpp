#include "sluice/find_model.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files/text_file.h"
#include "base/quote.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHubPrefix = "models--";

bool is_model(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "config.json", error);
}

// Its subfolders by name; none if it cannot be read.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (std::error_code ignored;
        entry->is_directory(ignored) && !entry->path().filename().string().starts_with("."))
      found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

// The folder "models--Qwen--Qwen3.6" is "Qwen/Qwen3.6" on the hub.
std::string name_at_hub(const std::string& folder) {
  std::string name = folder.substr(kHubPrefix.size());
  if (const auto at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
  return name;
}

// The snapshot of branch "main", or else the alphabetically last one.
fs::path newest_snapshot(const fs::path& repository) {
  std::error_code error;
  if (const fs::path ref = repository / "refs/main"; fs::is_regular_file(ref, error)) {
    std::string commit = files::read_text_file(ref, 256);
    while (!commit.empty() && (commit.back() == '\n' || commit.back() == '\r')) commit.pop_back();
    const fs::path snapshot = repository / "snapshots" / commit;
    if (commit.find('/') == std::string::npos && is_model(snapshot)) return snapshot;
  }
  const std::vector<fs::path> all = folders_in(repository / "snapshots");
  const auto found = std::find_if(all.rbegin(), all.rend(), is_model);
  return found == all.rend() ? fs::path() : *found;
}

void add_models(const fs::path& folder, std::map<std::string, fs::path>& models) {
  for (const fs::path& entry : folders_in(folder)) {
    const std::string name = entry.filename().string();
    if (name.starts_with(kHubPrefix)) {
      if (const fs::path snapshot = newest_snapshot(entry); !snapshot.empty())
        models.try_emplace(name_at_hub(name), snapshot);
    } else if (is_model(entry)) {
      models.try_emplace(name, entry);
    } else {
      for (const fs::path& inner : folders_in(entry))
        if (is_model(inner)) models.try_emplace(name + "/" + inner.filename().string(), inner);
    }
  }
}

// GGUF files belong to other programs; an explicit message keeps users from looking for damage.
void refuse_gguf(const fs::path& path) {
  std::error_code error;
  bool found = path.extension() == ".gguf";
  for (fs::directory_iterator entry(path, error); !error && !found && entry != fs::directory_iterator();
       entry.increment(error))
    found = entry->path().extension() == ".gguf";
  if (found && !is_model(path))
    fail(ErrorKind::unsupported,
         "'{}' holds a model as GGUF, a format that is not supported; expected a folder with config.json and "
         "*.safetensors",
         path.string());
}

bool is_path(const std::string& name) {
  return name.starts_with("/") || name.starts_with("./") || name.starts_with("../") || name == "." ||
         name == "..";
}

}  // namespace

std::filesystem::path find_model(const std::string& name, std::span<const fs::path> folders) {
  std::error_code error;
  refuse_gguf(name);
  if (is_path(name) || fs::is_directory(name, error)) return name;  // the loader reports problems with a path
  for (const fs::path& folder : folders) {
    std::map<std::string, fs::path> models;
    add_models(folder, models);
    if (const auto found = models.find(name); found != models.end()) return found->second;
  }
  fail(ErrorKind::input,
       "{} is neither a model folder nor the name of a model; 'sluice list' shows the available models",
       quote(name));
}

std::vector<FoundModel> list_models(std::span<const fs::path> folders) {
  std::map<std::string, fs::path> models;
  for (const fs::path& folder : folders) add_models(folder, models);
  std::vector<FoundModel> found;
  for (const auto& [name, folder] : models) found.push_back({name, folder});
  return found;
}

}  // namespace sluice
