// The prompts that a folder remembers: see SchedulerOptions::cache_folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice {

// One file: rows of caches for some tokens of a prompt, or the recurrent states behind them.
struct RememberedPrompt {
  std::filesystem::path file;
  bool state = false;
  std::int64_t tokens = 0;  // of the prompt up to there
  std::int64_t rows = 0;    // the last so many of them
  std::uint64_t bytes = 0;
  std::uint64_t model = 0;  // the same for files of one model with one set of options
  std::string damage = {};  // why it cannot be used; empty: it can
};

// In the order of their models and lengths. Contents are not read: damage to them shows when they are used.
std::vector<RememberedPrompt> list_remembered_prompts(const std::filesystem::path& folder);
// Removes them, and returns how many bytes are free again.
std::uint64_t clear_remembered_prompts(const std::filesystem::path& folder);

}  // namespace sluice
