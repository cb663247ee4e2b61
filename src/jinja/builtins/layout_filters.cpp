// Filters that truncate and wrap text, and print sizes.
#include <algorithm>
#include <cctype>

#include "jinja/builtins/builtins.h"
#include "jinja/builtins/parameters.h"
#include "jinja/operators.h"
#include "jinja/repr.h"
#include "jinja/unicode.h"

namespace sluice::jinja::builtins {
namespace {

std::string first_code_points(std::string_view text, std::int64_t count) {
  const auto offsets = code_point_offsets(text);
  const auto size = std::ssize(offsets) - 1;
  const std::int64_t end = std::clamp<std::int64_t>(count < 0 ? count + size : count, 0, size);
  return std::string(text.substr(0, offsets[end]));
}

Value truncate(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"length", "killwords", "end", "leeway"});
  const std::string text = str(runtime.budget(), value);
  const std::int64_t length = given.integer(0, 255);
  const std::string end = given.find(2) ? given.text(2) : "...";
  const std::int64_t end_length = count_code_points(end);
  const std::int64_t leeway = given.given(3) ? given.integer(3, 0) : 5;
  if (length < end_length) fault("expected length >= {}, got {}", end_length, length);
  if (leeway < 0) fault("expected leeway >= 0, got {}", leeway);
  if (static_cast<std::int64_t>(count_code_points(text)) <= length + leeway) return Value(text);
  std::string cut = first_code_points(text, length - end_length);
  if (!given.truth(1, false))
    if (const auto blank = cut.rfind(' '); blank != std::string::npos) cut.resize(blank);
  return Value(cut + end);
}

Value filesizeformat(Runtime&, const Value& value, const Call& call) {
  Parameters given(call, {"binary"});
  require_defined(value);
  if (!value.is_number() && !value.is_big_integer())
    fault("filesizeformat needs a number, not {}", type_name(value));
  const bool binary = given.truth(0, false);
  const double bytes = value.is_big_integer() ? to_double(value.big_integer()) : value.real();
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return Value("1 Byte");
  if (bytes < base) return Value(fmt::format("{} Bytes", static_cast<std::int64_t>(bytes)));
  constexpr const char* kDecimal[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  constexpr const char* kBinary[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
  double unit = base * base;
  std::size_t power = 0;
  while (power + 1 < std::size(kDecimal) && bytes >= unit) unit *= base, ++power;
  return Value(fmt::format("{:.1f} {}", base * bytes / unit, (binary ? kBinary : kDecimal)[power]));
}

// Python's textwrap.wrap for one line, with blanks as words of their own.
class Wrapper {
 public:
  Wrapper(std::int64_t width, bool break_words, bool break_hyphens)
      : width_(width), break_words_(break_words), break_hyphens_(break_hyphens) {}

  std::vector<std::string> wrap(std::string_view line) {
    std::vector<std::string> chunks = chunks_of(line);
    std::vector<std::string> lines;
    std::size_t at = 0;
    while (at < chunks.size()) {
      std::string current;
      std::int64_t used = 0;
      if (!lines.empty() && is_blank(chunks[at])) ++at;
      while (at < chunks.size() && used + length(chunks[at]) <= width_) {
        used += length(chunks[at]);
        current += chunks[at++];
      }
      if (at < chunks.size() && length(chunks[at]) > width_) {
        const std::int64_t room = std::max<std::int64_t>(1, width_ - used);
        if (break_words_) {
          const std::string part = first_code_points(chunks[at], room);
          current += part;
          chunks[at].erase(0, part.size());
        } else if (current.empty()) {
          current = chunks[at++];
        }
      }
      while (!current.empty() && current.back() == ' ' && at <= chunks.size()) current.pop_back();
      if (!current.empty()) lines.push_back(current);
    }
    return lines;
  }

 private:
  static std::int64_t length(const std::string& text) { return count_code_points(text); }
  static bool is_blank(const std::string& text) { return text.find_first_not_of(' ') == std::string::npos; }

  std::vector<std::string> chunks_of(std::string_view line) const {
    std::vector<std::string> chunks;
    for (const char c : line) {
      const bool blank = c == ' ' || c == '\t' || c == '\v' || c == '\f';
      const bool begins = chunks.empty() || blank != is_blank(chunks.back()) ||
                          (break_hyphens_ && !blank && ends_with_hyphen(chunks.back(), c));
      if (begins) chunks.emplace_back();
      chunks.back() += blank ? ' ' : c;
    }
    return chunks;
  }
  // A word may break after a hyphen between letters.
  static bool ends_with_hyphen(const std::string& word, char next) {
    const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
    return word.size() > 2 && word.back() == '-' && letter(word[word.size() - 2]) &&
           letter(word[word.size() - 3]) && letter(next);
  }

  std::int64_t width_;
  bool break_words_;
  bool break_hyphens_;
};

Value wordwrap(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  const std::string text = str(runtime.budget(), value);
  const std::int64_t width = given.integer(0, 79);
  if (width <= 0) fault("invalid width {} (must be > 0)", width);
  const std::string join = given.given(2) ? given.text(2) : "\n";
  Wrapper wrapper(width, given.truth(1, true), given.truth(3, true));
  std::string result;
  bool first = true;
  for (const std::string_view line : split_lines(text, false)) {
    if (!std::exchange(first, false)) result += join;
    bool first_part = true;
    for (const std::string& part : wrapper.wrap(line)) {
      if (!std::exchange(first_part, false)) result += join;
      result += part;
    }
  }
  return Value(std::move(result));
}

}  // namespace

const Builtins& layout_filters() {
  static const Builtins kFilters = {
      {"truncate", truncate},
      {"filesizeformat", filesizeformat},
      {"wordwrap", wordwrap},
  };
  return kFilters;
}

}  // namespace sluice::jinja::builtins
