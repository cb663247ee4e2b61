// The folders with models on this machine.
#pragma once

#include <filesystem>
#include <vector>

namespace sluice::cli::options {

// The folder of the bundled models: relative to the binary's prefix, or in the source tree above a build
// folder. Empty if there are none.
std::filesystem::path bundled_models();
// The folder of the user's own models: ~/.local/share/sluice/models. Empty without a home folder.
std::filesystem::path own_models();
// The folder of a model while it is pulled: hidden, because such names are not searched.
std::filesystem::path unfinished_pull(const std::filesystem::path& folder);
// Hugging Face's cache, which other programs may have filled.
std::filesystem::path hub_cache();
// All of the above, preceded by the folders in SLUICE_MODELS, in the order of the search.
std::vector<std::filesystem::path> model_folders();

}  // namespace sluice::cli::options
