// The prompts that a scheduler has cached, in memory and in files: see SchedulerOptions::cache_folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice {

// Tokens that prompts have in common, following those of the parent.
struct RememberedPrefix {
  std::int64_t parent = -1;            // the parent's index in the list; -1: prompts begin with these tokens
  std::int64_t begin = 0;              // position of its first token
  std::int64_t end = 0;                // position after its last token
  std::vector<std::int32_t> ids = {};  // the first of them, 64 at most
  std::int64_t on_device = 0;          // tokens whose cache rows are in the memory that the model computes in
  std::int64_t on_host = 0;            // in the host's memory
  std::int64_t on_disk = 0;            // in files
  bool state_on_device = false;        // the recurrent states after its last token
  bool state_on_host = false;
  bool state_on_disk = false;
  std::uint64_t bytes = 0;  // in all these places
  std::uint64_t hits = 0;   // prompts that continued from within it
};

// One file: cache rows of some tokens of a prompt, or the recurrent states after it.
struct RememberedPrompt {
  std::filesystem::path file;
  bool state = false;
  std::int64_t tokens = 0;  // of the prompt up to there
  std::int64_t rows = 0;    // the last so many of them
  std::uint64_t bytes = 0;
  std::uint64_t model = 0;  // the same for files of one model with one set of options
  std::string damage = {};  // why it cannot be used; empty: it can
};

// Sorted by model and length. Contents are not read, so damage to them is found only when they are used.
std::vector<RememberedPrompt> list_remembered_prompts(const std::filesystem::path& folder);
// Deletes them and returns the number of bytes freed.
std::uint64_t clear_remembered_prompts(const std::filesystem::path& folder);

}  // namespace sluice
