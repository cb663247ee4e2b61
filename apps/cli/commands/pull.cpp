// sluice pull: downloads a model from the hub into the user's own models.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "commands/commands.h"
#include "hub/download.h"
#include "options/model.h"
#include "options/model_folders.h"
#include "sluice/error.h"
#include "terminal/output.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace sluice::cli::commands {

namespace {

namespace fs = std::filesystem;

struct PullArguments {
  std::string name;
  std::string revision = "main";
  bool json = false;
};

// A folder locked against other pulls.
class LockedFolder {
 public:
  explicit LockedFolder(const fs::path& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error)
      throw Error(ErrorKind::input, fmt::format("cannot make '{}': {}", path.string(), error.message()));
    descriptor_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor_ >= 0 && (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)) return;
    const int code = errno;
    if (descriptor_ >= 0) close(descriptor_);
    throw Error(ErrorKind::input, code == EWOULDBLOCK
                                      ? fmt::format("'{}' is being pulled by another program", path.string())
                                      : fmt::format("cannot open '{}': {}", path.string(),
                                                    std::generic_category().message(code)));
  }
  ~LockedFolder() { close(descriptor_); }
  LockedFolder(const LockedFolder&) = delete;
  LockedFolder& operator=(const LockedFolder&) = delete;

 private:
  int descriptor_ = -1;
};

void require_space(const fs::path& folder, const hub::Repository& repository) {
  std::uintmax_t there = 0;
  for (const auto& entry : fs::directory_iterator(folder)) there += entry.file_size();
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available + there >= repository.bytes()) return;
  throw Error(ErrorKind::resource,
              fmt::format("the disk of '{}' has {:.2f} GB free, '{}' needs {:.2f} GB", folder.string(),
                          static_cast<double>(space.available) / 1e9, repository.name,
                          static_cast<double>(repository.bytes() - there) / 1e9));
}

// Removes the files of an earlier version of the model.
void remove_others(const fs::path& folder, const hub::Repository& repository) {
  std::set<std::string> names;
  for (const hub::RemoteFile& file : repository.files) names.insert(file.name);
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(folder))
    if (!names.contains(entry.path().filename().string())) others.push_back(entry.path());
  for (const fs::path& path : others) fs::remove_all(path);
}

std::uint64_t fill(const fs::path& folder, hub::Download& download, const hub::Repository& repository) {
  const fs::path filling = options::unfinished_pull(folder);
  const LockedFolder lock(filling);
  require_space(filling, repository);
  const std::uint64_t received = download.fill(filling);
  remove_others(filling, repository);
  fs::rename(filling, folder);
  return received;
}

void pull(const PullArguments& options) {
  const fs::path own = options::own_models();
  if (own.empty()) throw Error(ErrorKind::input, "there is no home folder to keep models in: set HOME");
  const fs::path folder = own / options.name;
  const hub::Host host = hub::default_host();
  const hub::Repository repository = hub::find_repository(host, options.name, options.revision);
  terminal::Progress progress("pulling");
  hub::Download download(host, repository, [&](const hub::DownloadProgress& now) {
    progress.update(now.done, now.all, now.file);
  });
  const bool exists = fs::exists(folder);
  if (exists && !download.is_whole(folder))
    throw Error(ErrorKind::input,
                fmt::format("'{}' exists and differs from the hub's version; 'sluice rm {}' deletes it",
                            folder.string(), options.name));
  const std::uint64_t received = exists ? 0 : fill(folder, download, repository);
  if (options.json)
    return terminal::print_json({{"name", options.name},
                                 {"path", folder.string()},
                                 {"commit", repository.commit},
                                 {"files", repository.files.size()},
                                 {"bytes", repository.bytes()},
                                 {"bytes_received", received}});
  fmt::print("{}: {}, {} files, {:.2f} GB in {}\n", options.name, exists ? "already complete" : "pulled",
             repository.files.size(), static_cast<double>(repository.bytes()) / 1e9,
             terminal::printable(folder.string()));
}

void run(const PullArguments& options) {
  terminal::note_interrupts();
  try {
    pull(options);
  } catch (const terminal::Interrupted&) {
    throw terminal::Interrupted(
        fmt::format("interrupted; 'sluice pull {}' continues from here", options.name));
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorKind::resource,
                fmt::format("cannot write '{}': {}", error.path1().string(), error.code().message()));
  }
}

std::optional<std::string> check_name(const std::string& name) {
  return hub::is_repository_name(name)
             ? std::nullopt
             : std::optional<std::string>("expected a model at the hub, as in Qwen/Qwen3-Next");
}

}  // namespace

void add_pull(Parser& parser) {
  auto options = std::make_shared<PullArguments>();
  Command command = parser.add("pull", "Download a model from the Hugging Face Hub");
  command.required("NAME", options->name, "Owner and model, e.g. Qwen/Qwen3.6-35B-A3B", check_name);
  command.option("--revision", options->revision, "Branch, tag or commit");
  command.flag("--json", options->json, options::kJsonMeaning);
  command.note(
      "Files are verified against the Hub's checksums and kept in ~/.local/share/sluice/models. An "
      "interrupted download resumes where it stopped. HF_ENDPOINT names another hub that speaks the same "
      "protocol; HF_TOKEN holds an access token for models that are not public.");
  command.example("sluice pull mlx-community/Qwen3.6-35B-A3B-4bit", "then: sluice run -m its name");
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli::commands
