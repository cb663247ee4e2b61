#include "grammar/json/string.h"

#include <fmt/core.h>

namespace sluice::grammar {
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

RegexId json_char_regex(RegexArena& arena, const CharSet& set) {
  const CharSet escaped = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  const CharSet special = set.intersection(escaped);
  std::vector<std::string> escapes;
  for (const CharSet::Range& range : special.ranges())
    for (char32_t c = range.first; c <= range.last; ++c) escapes.push_back(escape_of(c));
  return arena.any_of({arena.literals(std::move(escapes)), utf8_regex(arena, set.minus(escaped))});
}

RegexId json_any_char(RegexArena& arena) {
  return json_char_regex(arena, CharSet::all());
}

std::string json_escaped(std::string_view text) {
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

RegexId json_quoted(RegexArena& arena, RegexId content) {
  const RegexId mark = arena.byte('"');
  return arena.sequence({mark, content, mark});
}

}  // namespace sluice::grammar
