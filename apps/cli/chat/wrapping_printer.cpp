#include "chat/wrapping_printer.h"

#include <cstdio>

#include "terminal/output.h"
#include "terminal/terminal.h"

namespace sluice::cli::chat {

WrappingPrinter::WrappingPrinter() : wraps_(terminal::is_terminal(stdout)) {}

void WrappingPrinter::write(std::string_view text) {
  if (!wraps_) return terminal::print_now(text);
  for (const char c : terminal::printable(text, true)) {
    if (c == ' ' || c == '\t' || c == '\n') {
      put_word();
      if (c != '\n') {
        spaces_ += ' ';
        continue;
      }
      terminal::print_now("\n");
      spaces_.clear();
      column_ = 0;
    } else {
      // Scripts without spaces may break between characters that are two columns wide.
      const bool begins_character = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
      if (begins_character && terminal::columns_of(word_) > 1 && static_cast<unsigned char>(c) >= 0xE3)
        put_word();
      word_ += c;
    }
  }
}

void WrappingPrinter::finish() {
  put_word();
  terminal::print_now("\n");
  spaces_.clear();
  column_ = 0;
}

void WrappingPrinter::put_word() {
  if (word_.empty()) return;
  const int width = terminal::columns_of(word_);
  if (column_ > 0 && column_ + static_cast<int>(spaces_.size()) + width >= terminal::width(stdout)) {
    terminal::print_now("\n");
    column_ = 0;
    spaces_.clear();
  }
  terminal::print_now(spaces_ + word_);
  column_ += static_cast<int>(spaces_.size()) + width;
  spaces_.clear();
  word_.clear();
}

}  // namespace sluice::cli::chat
