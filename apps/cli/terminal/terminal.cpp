#include "terminal/terminal.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cwchar>

namespace sluice::cli::terminal {

namespace {

struct Character {
  char32_t value = 0;
  std::size_t length = 0;  // in bytes; 0: not UTF-8
};

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead >= 0xC2 && lead < 0xE0 && follows(1)) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead >= 0xE0 && lead < 0xF0 && follows(1) && follows(2)) {
    const char32_t value = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    if (value >= 0x800 && (value < 0xD800 || value > 0xDFFF)) return {value, 3};
  }
  if (lead >= 0xF0 && lead < 0xF5 && follows(1) && follows(2) && follows(3)) {
    const char32_t value =
        (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    if (value >= 0x10000 && value <= 0x10FFFF) return {value, 4};
  }
  return {};
}

// Includes characters that change the direction of writing, and so the apparent meaning of a line.
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

const char* code_of(Style style) {
  switch (style) {
    case Style::bold:
      return "\033[1m";
    case Style::dim:
      return "\033[2m";
    case Style::green:
      return "\033[1;32m";
    case Style::red:
      return "\033[1;31m";
  }
  return "";
}

}  // namespace

bool is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) != 0;
}

int width(std::FILE* stream) {
  constexpr int kDefault = 80;
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefault;
  return size.ws_col;
}

std::string printable(std::string_view text, bool lines) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (c.length == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at++]));
      continue;
    }
    if (is_control(c.value) && !(lines && (c.value == '\n' || c.value == '\t')))
      result += c.value < 0x100 ? fmt::format("\\x{:02x}", static_cast<unsigned>(c.value))
                                : fmt::format("\\u{:04x}", static_cast<unsigned>(c.value));
    else
      result += text.substr(at, c.length);
    at += c.length;
  }
  return result;
}

bool has_colors(std::FILE* stream) {
  const char* off = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  return is_terminal(stream) && (off == nullptr || *off == '\0') && kind != nullptr &&
         std::string_view(kind) != "dumb";
}

std::string styled(Style style, std::string_view text, std::FILE* stream) {
  if (!has_colors(stream)) return std::string(text);
  return fmt::format("{}{}\033[0m", code_of(style), text);
}

int columns_of(char32_t character) {
  if (character < 0x20) return 0;
  return std::max(0, wcwidth(static_cast<wchar_t>(character)));
}

int columns_of(std::string_view text) {
  int columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    columns += c.length == 0 ? 1 : columns_of(c.value);
    at += std::max<std::size_t>(1, c.length);
  }
  return columns;
}

}  // namespace sluice::cli::terminal
