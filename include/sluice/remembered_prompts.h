// The prompts that a scheduler remembers, and those that a folder does: see SchedulerOptions::cache_folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice {

// Tokens that prompts have in common, behind those of its parent.
struct RememberedPrefix {
  std::int64_t parent = -1;            // its place in the list; -1: prompts begin with it
  std::int64_t begin = 0;              // of its tokens
  std::int64_t end = 0;                // behind them
  std::vector<std::int32_t> ids = {};  // the first of them, 64 at most
  std::int64_t on_device = 0;          // tokens whose cache rows lie where the model computes
  std::int64_t on_host = 0;            // in the host's memory
  std::int64_t on_disk = 0;            // in files
  bool state_on_device = false;        // the recurrent states behind its last token
  bool state_on_host = false;
  bool state_on_disk = false;
  std::uint64_t bytes = 0;  // in all these places
  std::uint64_t hits = 0;   // prompts that went on from within it
};

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
