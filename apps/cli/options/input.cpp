#include "options/input.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <sstream>
#include <system_error>

#include "sluice/error.h"

namespace sluice::cli::options {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;

// A pipe or a file. A terminal or a closed stream provides no input.
bool input_is_piped() {
  struct stat status {};
  return fstat(STDIN_FILENO, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode));
}

}  // namespace

std::string read_input(const std::string& path) {
  const bool standard = path == "-";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(
      standard ? nullptr : std::fopen(path.c_str(), "rb"), [](std::FILE* file) { return std::fclose(file); });
  std::FILE* file = standard ? stdin : opened.get();
  const auto fail = [&] {
    throw Error(ErrorKind::input,
                fmt::format("cannot read '{}': {}", path, std::generic_category().message(errno)));
  };
  if (file == nullptr) fail();
  std::string text;
  char block[1 << 16];
  for (std::size_t count = 0; (count = std::fread(block, 1, sizeof(block), file)) > 0;) {
    text.append(block, count);
    if (text.size() > kMostBytes)
      throw Error(ErrorKind::input, fmt::format("'{}' has more than {} bytes", path, kMostBytes));
  }
  if (std::ferror(file) != 0) fail();
  return text;
}

std::optional<std::string> input_text(const std::optional<std::string>& argument, const std::string& path) {
  if (argument && !path.empty())
    throw Error(ErrorKind::input,
                fmt::format("the text is given twice: as '{}' and in '{}'", *argument, path));
  if (!path.empty()) return read_input(path);
  if (argument && *argument == "-") return read_input("-");
  if (argument && argument->starts_with("@")) return read_input(argument->substr(1));
  if (argument || !input_is_piped()) return argument;
  std::string text = read_input("-");
  // The line end of a single typed or echoed line is not part of the text.
  if (text.ends_with('\n') && text.find('\n') == text.size() - 1) text.pop_back();
  return text.empty() ? std::nullopt : std::optional(text);
}

std::vector<std::int32_t> parse_tokens(const std::string& text, const char* option) {
  std::string list = text.starts_with("@") ? read_input(text.substr(1)) : text;
  std::replace_if(
      list.begin(), list.end(), [](unsigned char c) { return c == ',' || std::isspace(c) != 0; }, ' ');
  std::vector<std::int32_t> ids;
  std::istringstream words(list);
  for (std::string word; words >> word;) {
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size() || id < 0)
      throw Error(ErrorKind::input, fmt::format("{}: '{}' is not a token id", option, word));
    ids.push_back(id);
  }
  if (ids.empty()) throw Error(ErrorKind::input, fmt::format("{} names no token ids", option));
  return ids;
}

}  // namespace sluice::cli::options
