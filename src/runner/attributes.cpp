#include "runner/attributes.h"

#include <fmt/format.h>

#include <charconv>

namespace sluice::runner {

namespace {

template <class T>
T parse(std::string_view op, std::string_view attribute, const std::string& text, std::string_view kind) {
  T value{};
  const char* end = text.data() + text.size();
  // from_chars does not accept a plus sign, which decimal numbers may have.
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  const auto [stop, status] = std::from_chars(text.data() + (plus ? 1 : 0), end, value);
  if (status != std::errc() || stop != end)
    fail(ErrorKind::input, "{}: attribute '{}' is '{}', it must be {}", op, attribute, text, kind);
  return value;
}

}  // namespace

double parse_number(std::string_view op, std::string_view attribute, const std::string& text) {
  return parse<double>(op, attribute, text, "a decimal number");
}

std::int64_t parse_integer(std::string_view op, std::string_view attribute, const std::string& text) {
  return parse<std::int64_t>(op, attribute, text, "a whole number");
}

bool parse_bool(std::string_view op, std::string_view attribute, const std::string& text) {
  if (text != "0" && text != "1")
    fail(ErrorKind::input, "{}: attribute '{}' is '{}', it must be 0 or 1", op, attribute, text);
  return text == "1";
}

std::size_t parse_choice(std::string_view op, std::string_view attribute, const std::string& text,
                         std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return i;
  fail(ErrorKind::input, "{}: attribute '{}' is '{}', allowed is {}", op, attribute, text,
       fmt::join(names, ", "));
}

}  // namespace sluice::runner
