// sluice list and sluice rm: the models on this machine.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "hub/repository.h"
#include "options/input.h"
#include "options/model.h"
#include "options/model_folders.h"
#include "sluice/error.h"
#include "sluice/find_model.h"
#include "terminal/output.h"
#include "terminal/terminal.h"

namespace sluice::cli::commands {

namespace {

namespace fs = std::filesystem;

bool is_within(const fs::path& path, const fs::path& folder) {
  if (folder.empty()) return false;
  std::error_code error;
  const fs::path inside =
      fs::weakly_canonical(path, error).lexically_relative(fs::weakly_canonical(folder, error));
  return !inside.empty() && *inside.begin() != "..";
}

const char* place_of(const FoundModel& model) {
  if (is_within(model.folder, options::bundled_models())) return "bundled";
  return is_within(model.folder, options::hub_cache()) ? "hub" : "folder";
}

std::uintmax_t bytes_of(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (std::error_code ignored; entry->is_regular_file(ignored)) bytes += entry->file_size(ignored);
  return bytes;
}

// From its config.json; folders with an invalid file are listed too.
std::string architecture_of(const fs::path& folder) {
  const auto config =
      nlohmann::json::parse(options::read_input((folder / "config.json").string()), nullptr, false);
  return config.is_object() && config.contains("model_type") && config["model_type"].is_string()
             ? config["model_type"].get<std::string>()
             : "unknown";
}

void list(bool names, bool json) {
  auto rows = nlohmann::ordered_json::array();
  for (const FoundModel& model : list_models(options::model_folders())) {
    if (names) {
      fmt::print("{}\n", terminal::printable(model.name));
      continue;
    }
    const std::string architecture = architecture_of(model.folder);
    const std::uintmax_t bytes = bytes_of(model.folder);
    if (json)
      rows.push_back({{"name", model.name},
                      {"path", model.folder.string()},
                      {"architecture", architecture},
                      {"bytes", bytes},
                      {"place", place_of(model)}});
    else
      fmt::print("{:32} {:14} {:9.2f} GB  {}\n", terminal::printable(model.name),
                 terminal::printable(architecture), static_cast<double>(bytes) / 1e9,
                 terminal::printable(model.folder.string()));
  }
  if (json) terminal::print_json(rows);
}

// The folder of a user's own model, complete or left by an interrupted pull. Empty: none.
fs::path own_folder(const std::string& name) {
  const fs::path own = options::own_models();
  if (own.empty()) return {};
  for (const FoundModel& model : list_models(std::vector{own}))
    if (model.name == name) return model.folder;
  const fs::path unfinished = options::unfinished_pull(own / name);
  std::error_code error;
  return hub::is_repository_name(name) && fs::is_directory(unfinished, error) ? unfinished : fs::path();
}

void remove(const std::string& name) {
  const fs::path own = options::own_models();
  const fs::path folder = own_folder(name);
  if (folder.empty())
    throw Error(ErrorKind::input,
                fmt::format("there is no model '{}' in '{}'; 'sluice rm' deletes models in that folder only",
                            name, own.string()));
  const std::uintmax_t bytes = bytes_of(folder);
  std::error_code error;
  fs::remove_all(folder, error);
  if (error)
    throw Error(ErrorKind::input, fmt::format("cannot remove '{}': {}", folder.string(), error.message()));
  // Also removes the owner's folder, unless other models are in it.
  if (folder.parent_path() != own) fs::remove(folder.parent_path(), error);
  fmt::print("{}: removed, {:.2f} GB\n", terminal::printable(name), static_cast<double>(bytes) / 1e9);
}

}  // namespace

void add_list(Parser& parser) {
  auto names = std::make_shared<bool>(false);
  auto json = std::make_shared<bool>(false);
  Command command = parser.add("list", "List the models on this machine");
  command.flag("--names", *names, "Print names only");
  command.flag("--json", *json, options::kJsonMeaning);
  command.note(
      "Models are searched for in this order: the folders in SLUICE_MODELS, ~/.local/share/sluice/models, "
      "the bundled models, and the Hugging Face cache.");
  command.on_run([=] { list(*names, *json); });
}

void add_rm(Parser& parser) {
  auto name = std::make_shared<std::string>();
  Command command = parser.add("rm", "Delete a model from ~/.local/share/sluice/models");
  command.required("NAME", *name, "The name that 'sluice list' shows");
  command.example("sluice rm mlx-community/Qwen3.6-35B-A3B-4bit", "delete a model that was pulled");
  command.on_run([name] { remove(*name); });
}

}  // namespace sluice::cli::commands
