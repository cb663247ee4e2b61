#include "chat/line_reader.h"

#include <fmt/core.h>

#include <cstdlib>
#include <iostream>

#include "chat/editing/reader.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace sluice::cli::chat {

namespace {

namespace fs = std::filesystem;

class PlainReader : public LineReader {
 public:
  Outcome read(const std::string& prompt, std::string& line) override {
    if (terminal::is_terminal(stdin)) fmt::print(stderr, "{}", prompt);
    if (std::getline(std::cin, line)) return Outcome::line;
    if (!terminal::interrupted()) return Outcome::end;
    std::cin.clear();
    return Outcome::interrupted_empty;
  }
};

}  // namespace

std::unique_ptr<LineReader> make_line_reader(std::vector<std::string> words, const fs::path& history) {
  std::unique_ptr<LineReader> reader;
  if (terminal::is_terminal(stdin) && terminal::is_terminal(stderr))
    reader = editing::make_reader(std::move(words), history);
  if (reader == nullptr) reader = std::make_unique<PlainReader>();
  return reader;
}

fs::path history_file() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return fs::path(state) / "sluice/history";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return fs::path(home) / ".local/state/sluice/history";
  return {};
}

}  // namespace sluice::cli::chat
