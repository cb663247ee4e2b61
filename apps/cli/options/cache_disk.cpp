#include "options/cache_disk.h"

#include <fmt/core.h>

#include "sluice/error.h"
#include "terminal/terminal.h"
#include "values.h"

namespace sluice::cli::options {

void read_cache_disk(const std::string& text, SchedulerOptions& options) {
  if (text.empty()) return;
  options.log = [](const std::string& line) { fmt::print(stderr, "{}\n", terminal::printable(line)); };
  options.cache_folder = text;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return;
  if (const auto complaint = read_size(text.substr(colon + 1), options.cache_folder_bytes))
    throw Error(ErrorKind::input, fmt::format("--cache-disk '{}': {} after the colon", text, *complaint));
  options.cache_folder = text.substr(0, colon);
}

}  // namespace sluice::cli::options
