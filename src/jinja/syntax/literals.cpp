#include "jinja/syntax/literals.h"

#include <charconv>
#include <string>

#include "base/utf8.h"

namespace sluice::jinja::syntax {
namespace {

bool is_digit(char c, int base = 10) {
  if (base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) return true;
  return c >= '0' && c < '0' + (base < 10 ? base : 10);
}

// The end of a run of digits that single underscores may separate.
std::size_t digits_end(std::string_view s, std::size_t i, int base = 10) {
  std::size_t end = i;
  while (i < s.size()) {
    if (s[i] == '_' && end == i && i + 1 < s.size()) {
      ++i;
      continue;
    }
    if (!is_digit(s[i], base)) break;
    end = ++i;
  }
  return end;
}

std::string without_underscores(std::string_view digits) {
  std::string result;
  for (char c : digits)
    if (c != '_') result += c;
  return result;
}

Value integer(std::string_view digits, int base) {
  std::string text = without_underscores(digits);
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value, base).ec == std::errc()) return value;
  if (base == 10) return make_integer(text);
  fault("the integer {} does not fit in 64 bits", text);
}

// The end of the fraction and exponent after the digits that end at `i`; `i` itself for an integer.
std::size_t real_end(std::string_view s, std::size_t i) {
  std::size_t end = i;
  if (i + 1 < s.size() && s[i] == '.' && is_digit(s[i + 1])) end = digits_end(s, i + 1);
  if (end < s.size() && (s[end] == 'e' || s[end] == 'E')) {
    std::size_t exponent = end + 1;
    if (exponent < s.size() && (s[exponent] == '+' || s[exponent] == '-')) ++exponent;
    if (exponent < s.size() && is_digit(s[exponent])) end = digits_end(s, exponent);
  }
  return end;
}

std::size_t scan_number(std::string_view s, std::size_t begin, Value& value) {
  if (!is_digit(s[begin])) return 0;
  std::size_t whole = digits_end(s, begin);
  std::size_t end = begin > 0 && s[begin - 1] == '.' ? whole : real_end(s, whole);
  if (end > whole) {
    std::string text = without_underscores(s.substr(begin, end - begin));
    double number = 0;
    auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    if (result.ec != std::errc())
      number = std::strtod(text.c_str(), nullptr);  // overflow gives inf, as in Python
    value = number;
    return end - begin;
  }
  if (s[begin] == '0' && begin + 1 < s.size()) {
    char kind = s[begin + 1] | 0x20;
    int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    std::size_t last = base ? digits_end(s, begin + 2, base) : begin;
    if (base && last > begin + 2) {
      value = integer(s.substr(begin + 2, last - begin - 2), base);
      return last - begin;
    }
    whole = begin;  // a zero may only be followed by zeros
    while (whole < s.size() && s[whole] == '0') ++whole;
  }
  value = integer(s.substr(begin, whole - begin), 10);
  return whole - begin;
}

char32_t hex_escape(std::string_view s, std::size_t& i, std::size_t digits, char kind) {
  std::uint32_t code = 0;
  const char* end = s.data() + i + digits;
  if (i + digits > s.size() || std::from_chars(s.data() + i, end, code, 16).ptr != end)
    fault("truncated \\{} escape", kind);
  if (code > 0x10FFFF) fault("illegal Unicode character");
  if (code >= 0xD800 && code < 0xE000) fault("the escape \\{}{:04x} is half a character", kind, code);
  i += digits;
  return code;
}

char32_t octal_escape(std::string_view s, std::size_t& i) {
  char32_t code = 0;
  for (int n = 0; n < 3 && i < s.size() && is_digit(s[i], 8); ++n)
    code = code * 8 + static_cast<char32_t>(s[i++] - '0');
  return code;
}

// Interprets what follows a backslash at `i`.
void unescape_one(std::string_view s, std::size_t& i, std::string& out) {
  constexpr std::string_view kNames = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
  char c = s[i];
  if (std::size_t known = kNames.find(c); known != kNames.npos) {
    out += kMeanings[known];
    ++i;
  } else if (c == '\n') {
    ++i;
  } else if (is_digit(c, 8)) {
    append_utf8(out, octal_escape(s, i));
  } else if (c == 'x' || c == 'u' || c == 'U') {
    append_utf8(out, hex_escape(s, ++i, c == 'x' ? 2 : c == 'u' ? 4 : 8, c));
  } else if (c == 'N') {
    fault("character names (\\N) are not supported");
  } else {
    out += '\\';
  }
}

std::size_t scan_string(std::string_view s, std::size_t begin, Value& value) {
  char quote = s[begin];
  if (quote != '\'' && quote != '"') return 0;
  std::size_t end = begin + 1;
  while (end < s.size() && s[end] != quote) end += s[end] == '\\' ? 2 : 1;
  if (end >= s.size()) return 0;
  std::string_view body = s.substr(begin + 1, end - begin - 1);
  std::string text;
  for (std::size_t i = 0; i < body.size();) {
    if (body[i] == '\\')
      unescape_one(body, ++i, text);
    else
      text += body[i++];
  }
  value = Value(std::move(text));
  return end + 1 - begin;
}

}  // namespace

std::size_t scan_literal(std::string_view source, std::size_t position, Value& value) {
  if (std::size_t length = scan_number(source, position, value)) return length;
  return scan_string(source, position, value);
}

}  // namespace sluice::jinja::syntax
