// Lines of user input: with editing and history on a terminal, plain elsewhere.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace sluice::cli::chat {

class LineReader {
 public:
  enum class Outcome { line, end, interrupted, interrupted_empty };

  virtual ~LineReader() = default;
  // Reads into `line`, which may have several lines if they were pasted or entered with Alt-Enter.
  virtual Outcome read(const std::string& prompt, std::string& line) = 0;
};

// With libedit if stdin and stderr are a terminal. `words` are completed by the tab key at the start of a
// line; input is stored in `history`, unless that is empty.
std::unique_ptr<LineReader> make_line_reader(std::vector<std::string> words,
                                             const std::filesystem::path& history);

// The file of chat's history; empty without a home folder.
std::filesystem::path history_file();

}  // namespace sluice::cli::chat
