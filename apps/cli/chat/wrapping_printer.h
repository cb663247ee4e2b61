// Text that arrives in pieces, its words wrapped at the terminal's width.
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli {

// Writes to stdout. Where that is no terminal, the text goes there as it is.
class WrappingPrinter {
 public:
  WrappingPrinter();
  void write(std::string_view text);
  // Writes the word that was held back, and ends the line.
  void finish();

 private:
  void put_word();

  bool wraps_;
  int column_ = 0;
  std::string spaces_;  // before the word, not yet written
  std::string word_;    // not yet whole
};

}  // namespace sluice::cli
