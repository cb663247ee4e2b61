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

// The checkpoint folder that `name` means: a path where it is one, else the first of that name in `folders`.
// A name is a folder's ("delta-story"), or an owner's and a folder's ("Qwen/Qwen3.6-35B-A3B"); folders in the
// layout of Hugging Face's cache ("models--Qwen--Qwen3.6-35B-A3B/snapshots/...") are found by the name they
// had at the hub.
std::filesystem::path find_model(const std::string& name, std::span<const std::filesystem::path> folders);

// All checkpoints in the folders, by name; of two with one name, the one that find_model finds.
std::vector<FoundModel> list_models(std::span<const std::filesystem::path> folders);

}  // namespace sluice
