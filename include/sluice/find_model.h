// Models by name.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sluice {

// A checkpoint folder and the name it goes by.
struct FoundModel {
  std::string name;
  std::filesystem::path folder;
};

// The checkpoint folder that `name` refers to: a path if it is one, else the first of that name in `folders`.
// A name is that of a folder ("delta-story"), or of an owner and a folder ("Qwen/Qwen3.6-35B-A3B"); folders
// in the layout of the Hugging Face cache ("models--Qwen--Qwen3.6-35B-A3B/snapshots/...") are found by their
// name on the hub.
std::filesystem::path find_model(const std::string& name, std::span<const std::filesystem::path> folders);

// All checkpoints in the folders, by name; of two with one name, the one that find_model finds.
std::vector<FoundModel> list_models(std::span<const std::filesystem::path> folders);

}  // namespace sluice
