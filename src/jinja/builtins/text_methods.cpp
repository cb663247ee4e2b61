// The methods of strings, except those that split them.
#include <algorithm>

#include "base/integer_cast.h"
#include "jinja/builtins/builtins.h"
#include "jinja/builtins/format.h"
#include "jinja/builtins/parameters.h"
#include "jinja/operators.h"
#include "jinja/repr.h"
#include "jinja/unicode.h"

namespace sluice::jinja::builtins {
namespace {

// Markup remains markup.
Value like(const Value& self, std::string text) {
  return Value(std::move(text), self.is_markup());
}

template <bool left, bool right>
Value strip_method(Runtime&, const Value& self, const Call& call) {
  Parameters given(call, {"chars"});
  std::string_view characters = given.given(0) ? given.text(0) : std::string_view();
  return like(self, std::string(strip(self.text(), given.given(0) ? &characters : nullptr, left, right)));
}

template <auto convert>
Value converted(Runtime&, const Value& self, const Call& call) {
  Parameters none(call, {});
  return like(self, convert(self.text()));
}

template <class Change>
std::string map_code_points(std::string_view text, Change change) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t start = i;
    char32_t c = next_code_point(text, i);
    result += change(c, text.substr(start, i - start));
  }
  return result;
}

std::string title(std::string_view text) {
  std::string result;
  bool inside = false;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t start = i;
    char32_t c = next_code_point(text, i);
    result += inside ? lower_within(text, start, i) : to_title(text.substr(start, i - start));
    inside = is_cased(c);
  }
  return result;
}

std::string swapcase(std::string_view text) {
  return map_code_points(text, [](char32_t, std::string_view bytes) {
    std::string up = to_upper(bytes);
    return up == bytes ? to_lower(bytes) : up;
  });
}

template <bool (*all)(char32_t)>
Value is_all(Runtime&, const Value& self, const Call& call) {
  Parameters none(call, {});
  const std::string& text = self.text();
  for (std::size_t i = 0; i < text.size();)
    if (!all(next_code_point(text, i))) return false;
  return !text.empty();
}

bool is_alnum(char32_t c) {
  return is_alpha(c) || is_numeric(c);
}

template <bool upper>
Value has_case(Runtime&, const Value& self, const Call& call) {
  Parameters none(call, {});
  const std::string& text = self.text();
  bool cased = false;
  for (std::size_t i = 0; i < text.size();) cased |= is_cased(next_code_point(text, i));
  return cased && text == (upper ? to_upper(text) : to_lower(text));
}

bool is_ascii_character(char32_t c) {
  return c < 0x80;
}

// As is_all, but true for an empty text.
template <bool (*all)(char32_t)>
Value all_or_none(Runtime& runtime, const Value& self, const Call& call) {
  return self.text().empty() || truth(is_all<all>(runtime, self, call));
}

Value isidentifier(Runtime&, const Value& self, const Call& call) {
  Parameters none(call, {});
  const std::string& text = self.text();
  std::size_t i = 0;
  if (text.empty() || !begins_identifier(next_code_point(text, i))) return false;
  while (i < text.size())
    if (!continues_identifier(next_code_point(text, i))) return false;
  return true;
}

// Capitals must follow characters without case, other letters characters with case.
Value istitle(Runtime&, const Value& self, const Call& call) {
  Parameters none(call, {});
  bool inside = false, cased = false;
  const std::string& text = self.text();
  for (std::size_t i = 0; i < text.size();) {
    std::size_t start = i;
    char32_t c = next_code_point(text, i);
    std::string_view bytes = std::string_view(text).substr(start, i - start);
    if (is_cased(c)) {
      bool capital = to_lower(bytes) != bytes;
      if (capital == inside) return false;
      cased = true;
    }
    inside = is_cased(c);
  }
  return cased;
}

Value expandtabs(Runtime& runtime, const Value& self, const Call& call) {
  Parameters given(call, {"tabsize"});
  std::int64_t size = given.integer(0, 8), column = 0;
  std::string result = map_code_points(self.text(), [&](char32_t c, std::string_view bytes) {
    if (c == '\t') {
      std::int64_t blanks = size > 0 ? size - column % size : 0;
      runtime.budget().grow(to_size(blanks));
      column += blanks;
      return std::string(to_size(blanks), ' ');
    }
    column = c == '\n' || c == '\r' ? 0 : column + 1;
    return std::string(bytes);
  });
  return like(self, std::move(result));
}

// self[start:stop] as bytes, with the code point index where it begins.
struct Window {
  std::string_view text;
  std::int64_t first;
};

Window window(const Value& self, const Parameters& given, std::size_t start, std::size_t stop) {
  std::string_view text = self.text();
  if (!given.given(start) && !given.given(stop)) return {text, 0};
  auto offsets = code_point_offsets(text);
  auto size = std::ssize(offsets) - 1;
  auto clamp = [&](std::int64_t i) { return std::clamp(i < 0 ? i + size : i, std::int64_t{0}, size); };
  std::int64_t first = given.given(start) ? given.integer(start, 0) : 0;
  std::int64_t last = clamp(given.given(stop) ? given.integer(stop, 0) : size);
  if (first > size || clamp(first) > last) return {{}, -1};
  first = clamp(first);
  return {text.substr(offsets[first], offsets[last] - offsets[first]), first};
}

template <bool from_right, bool must_find>
Value find(Runtime&, const Value& self, const Call& call) {
  Parameters given(call, {"sub", "start", "end"}, 1);
  Window in = window(self, given, 1, 2);
  const std::string& sub = given.text(0);
  std::size_t at = in.first < 0 ? in.text.npos : from_right ? in.text.rfind(sub) : in.text.find(sub);
  if (at == in.text.npos) {
    if (must_find) fault("substring not found");
    return std::int64_t{-1};
  }
  return in.first + static_cast<std::int64_t>(count_code_points(in.text.substr(0, at)));
}

Value count_method(Runtime&, const Value& self, const Call& call) {
  Parameters given(call, {"sub", "start", "end"}, 1);
  Window in = window(self, given, 1, 2);
  const std::string& sub = given.text(0);
  if (in.first < 0) return std::int64_t{0};
  if (sub.empty()) return static_cast<std::int64_t>(count_code_points(in.text)) + 1;
  std::int64_t found = 0;
  for (std::size_t i = 0; (i = in.text.find(sub, i)) != in.text.npos; i += sub.size()) ++found;
  return found;
}

template <bool at_end>
Value has_affix(Runtime&, const Value& self, const Call& call) {
  Parameters given(call, {"affix", "start", "end"}, 1);
  Window in = window(self, given, 1, 2);
  auto matches = [&](const Value& affix) {
    if (!affix.is_text())
      fault("{} first arg must be str or a tuple of str, not {}", at_end ? "endswith" : "startswith",
            type_name(affix));
    if (in.first < 0 || affix.text().size() > in.text.size()) return false;
    std::size_t offset = at_end ? in.text.size() - affix.text().size() : 0;
    return in.text.substr(offset, affix.text().size()) == affix.text();
  };
  require_defined(given.value(0));
  if (!is_tuple(given.value(0))) return matches(given.value(0));
  const Values& choices = given.value(0).sequence().items;
  return std::any_of(choices.begin(), choices.end(), matches);
}

Value replace_method(Runtime& runtime, const Value& self, const Call& call) {
  Parameters given(call, {"old", "new", "count"}, 2);
  std::string with = self.is_markup() ? escape(runtime.budget(), given.value(1)).text() : given.text(1);
  return like(self, replace(runtime.budget(), self.text(), given.text(0), with, given.integer(2, -1)));
}

Value join_method(Runtime& runtime, const Value& self, const Call& call) {
  Parameters given(call, {"iterable"}, 1);
  Budget& budget = runtime.budget();
  std::string result;
  std::size_t i = 0;
  for (const Value& item : iterate(budget, given.value(0))) {
    if (!self.is_markup() && !item.is_text())
      fault("sequence item {}: expected str instance, {} found", i, type_name(item));
    if (i++ > 0) result += self.text();
    result += self.is_markup() ? escape(budget, item).text() : item.text();
    if (result.size() > budget.limits().output_bytes) budget.grow(result.size());
  }
  return like(self, std::move(result));
}

Value format_method(Runtime& runtime, const Value& self, const Call& call) {
  return brace_format(runtime, self, call);
}

template <bool left, bool right>
Value justify(Runtime& runtime, const Value& self, const Call& call) {
  Parameters given(call, {"width", "fillchar"}, 1);
  const std::string fill = given.find(1) ? given.text(1) : " ";
  if (count_code_points(fill) != 1) fault("The fill character must be exactly one character long");
  std::int64_t width = given.integer(0, 0);
  std::int64_t missing = width - static_cast<std::int64_t>(count_code_points(self.text()));
  if (missing <= 0) return self;
  runtime.budget().grow(to_size(missing));
  std::int64_t before = !left ? 0 : right ? missing / 2 + (missing & width & 1) : missing;
  std::string result;
  for (std::int64_t i = 0; i < before; ++i) result += fill;
  result += self.text();
  for (std::int64_t i = before; i < missing; ++i) result += fill;
  return like(self, std::move(result));
}

Value zfill(Runtime& runtime, const Value& self, const Call& call) {
  Parameters given(call, {"width"}, 1);
  std::int64_t missing = given.integer(0, 0) - static_cast<std::int64_t>(count_code_points(self.text()));
  if (missing <= 0) return self;
  runtime.budget().grow(to_size(missing));
  std::string text = self.text();
  text.insert(!text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0, to_size(missing), '0');
  return like(self, std::move(text));
}

template <bool at_end>
Value remove_affix(Runtime&, const Value& self, const Call& call) {
  const std::string affix = Parameters(call, {"affix"}, 1).text(0);
  const std::string& text = self.text();
  if (affix.size() > text.size()) return self;
  std::size_t offset = at_end ? text.size() - affix.size() : 0;
  if (text.compare(offset, affix.size(), affix) != 0) return self;
  return like(self, at_end ? text.substr(0, offset) : text.substr(affix.size()));
}

}  // namespace

std::string capitalize(std::string_view text) {
  if (text.empty()) return "";
  std::size_t first = 0;
  next_code_point(text, first);
  return to_title(text.substr(0, first)) + to_lower(text.substr(first));
}

std::string replace(Budget& budget, std::string_view text, std::string_view old, std::string_view with,
                    std::int64_t count) {
  std::string result;
  std::size_t i = 0;
  for (; count != 0; --count) {
    std::size_t at = text.find(old, i);
    if (at == text.npos) break;
    result.append(text.substr(i, at - i)).append(with);
    i = at + old.size();
    if (old.empty()) {  // between all code points, and at both ends
      if (i >= text.size()) return result;
      std::size_t next = i;
      next_code_point(text, next);
      result += text.substr(i, next - i);
      i = next;
    }
    if (result.size() > budget.limits().output_bytes) budget.grow(result.size());
  }
  return result.append(text.substr(std::min(i, text.size())));
}

const Builtins& text_methods() {
  static const Builtins kMethods = {
      {"strip", strip_method<true, true>},
      {"lstrip", strip_method<true, false>},
      {"rstrip", strip_method<false, true>},
      {"upper", converted<to_upper>},
      {"lower", converted<to_lower>},
      {"casefold", converted<fold_case>},
      {"capitalize", converted<capitalize>},
      {"title", converted<title>},
      {"swapcase", converted<swapcase>},
      {"isspace", is_all<is_space>},
      {"isalpha", is_all<is_alpha>},
      {"isalnum", is_all<is_alnum>},
      {"isdigit", is_all<is_digit>},
      {"isdecimal", is_all<is_decimal>},
      {"isnumeric", is_all<is_numeric>},
      {"isascii", all_or_none<is_ascii_character>},
      {"isprintable", all_or_none<is_printable>},
      {"isidentifier", isidentifier},
      {"istitle", istitle},
      {"expandtabs", expandtabs},
      {"isupper", has_case<true>},
      {"islower", has_case<false>},
      {"find", find<false, false>},
      {"rfind", find<true, false>},
      {"index", find<false, true>},
      {"rindex", find<true, true>},
      {"count", count_method},
      {"startswith", has_affix<false>},
      {"endswith", has_affix<true>},
      {"replace", replace_method},
      {"join", join_method},
      {"format", format_method},
      {"ljust", justify<false, true>},
      {"rjust", justify<true, false>},
      {"center", justify<true, true>},
      {"zfill", zfill},
      {"removeprefix", remove_affix<false>},
      {"removesuffix", remove_affix<true>},
  };
  return kMethods;
}

}  // namespace sluice::jinja::builtins
