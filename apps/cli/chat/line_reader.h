// Lines that someone types: edited and remembered on a terminal, plain elsewhere.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace sluice::cli {

class LineReader {
 public:
  enum class Outcome { line, end, interrupted, interrupted_empty };

  virtual ~LineReader() = default;
  // Reads into `line`, which may hold several lines where they were pasted or Alt-Enter made them.
  virtual Outcome read(const std::string& prompt, std::string& line) = 0;
};

// With libedit where stdin and stderr are a terminal. `words` are completed by the tab key at the beginning
// of a line; what was typed is remembered in `history`, unless that is empty.
std::unique_ptr<LineReader> make_line_reader(std::vector<std::string> words,
                                             const std::filesystem::path& history);

// Null where libedit is not built in.
std::unique_ptr<LineReader> make_editing_reader(std::vector<std::string> words,
                                                const std::filesystem::path& history);

// Where chat remembers what was typed; empty where there is no home.
std::filesystem::path history_file();

}  // namespace sluice::cli
