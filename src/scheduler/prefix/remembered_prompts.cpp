#include "sluice/remembered_prompts.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "scheduler/prefix/prefix_file.h"

namespace sluice {

namespace {

RememberedPrompt describe_file(const std::filesystem::path& path) {
  RememberedPrompt prompt{.file = path};
  std::error_code error;
  prompt.bytes = std::filesystem::file_size(path, error);
  if (error) prompt.bytes = 0;
  try {
    const scheduler::prefix::PrefixFile file = scheduler::prefix::read_prefix_file(path);
    prompt.state = file.kind == scheduler::prefix::FileKind::state;
    prompt.tokens = file.end();
    prompt.rows = file.end() - file.begin;
    prompt.model = file.fingerprint;
  } catch (const Error& failed) {
    prompt.damage = failed.what();
  }
  return prompt;
}

}  // namespace

std::vector<RememberedPrompt> list_remembered_prompts(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<RememberedPrompt> prompts;
  std::filesystem::directory_iterator entry(folder, error);
  if (error) fail(ErrorKind::input, "cannot list '{}': {}", folder.string(), error.message());
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (entry->path().filename().string().ends_with(scheduler::prefix::kPrefixFileEnding))
      prompts.push_back(describe_file(entry->path()));
  std::sort(prompts.begin(), prompts.end(), [](const RememberedPrompt& a, const RememberedPrompt& b) {
    return std::tie(a.model, a.tokens, a.file) < std::tie(b.model, b.tokens, b.file);
  });
  return prompts;
}

std::uint64_t clear_remembered_prompts(const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  for (const RememberedPrompt& prompt : list_remembered_prompts(folder)) {
    std::error_code error;
    if (std::filesystem::remove(prompt.file, error)) bytes += prompt.bytes;
  }
  return bytes;
}

}  // namespace sluice
