// Prints text that arrives in pieces, wrapping its words at the terminal's width.
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli::chat {

// Writes to stdout. If that is not a terminal, the text is not wrapped.
class WrappingPrinter {
 public:
  WrappingPrinter();
  void write(std::string_view text);
  // Writes a pending word and ends the line.
  void finish();

 private:
  void put_word();

  bool wraps_;
  int column_ = 0;
  std::string spaces_;  // pending, before the word
  std::string word_;    // still incomplete
};

}  // namespace sluice::cli::chat
