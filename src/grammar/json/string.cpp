#include "grammar/json/string.h"

#include <fmt/core.h>

namespace sluice::grammar::json {
namespace {

std::string escape_of(unsigned char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return c < 0x20 ? fmt::format("\\u{:04x}", c) : "";
  }
}

}  // namespace

regex::Id char_regex(regex::Arena& arena, const regex::CharSet& set) {
  const regex::CharSet escaped = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  const regex::CharSet special = set.intersection(escaped);
  std::vector<std::string> escapes;
  for (const regex::CharSet::Range& range : special.ranges())
    for (char32_t c = range.first; c <= range.last; ++c) escapes.push_back(escape_of(c));
  return arena.any_of({arena.literals(std::move(escapes)), regex::utf8_regex(arena, set.minus(escaped))});
}

regex::Id any_char(regex::Arena& arena) {
  return char_regex(arena, regex::CharSet::all());
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const std::string escape = escape_of(c);
    if (escape.empty()) {
      out += c;
    } else {
      out += escape;
    }
  }
  return out;
}

regex::Id quoted(regex::Arena& arena, regex::Id content) {
  const regex::Id mark = arena.byte('"');
  return arena.sequence({mark, content, mark});
}

}  // namespace sluice::grammar::json
