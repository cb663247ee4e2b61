// Where this machine keeps models.
#pragma once

#include <filesystem>
#include <vector>

namespace sluice::cli {

// Where the models in the box are: beside the binary's prefix, or in the source tree above a build folder.
// Empty where they are not.
std::filesystem::path bundled_models();
// Where models of one's own are kept: ~/.local/share/sluice/models. Empty without a home.
std::filesystem::path own_models();
// Where such a model lies while it is pulled: hidden, since models are not looked for under such names.
std::filesystem::path unfinished_pull(const std::filesystem::path& folder);
// Hugging Face's cache, which others may have filled.
std::filesystem::path hub_cache();
// All of the above, and before them the folders of SLUICE_MODELS, in the order in which they are looked into.
std::vector<std::filesystem::path> model_folders();

}  // namespace sluice::cli
