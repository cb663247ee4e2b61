// The methods that split strings.
#include <algorithm>

#include "base/integer_cast.h"
#include "jinja/builtins/builtins.h"
#include "jinja/builtins/parameters.h"
#include "jinja/unicode.h"

namespace sluice::jinja::builtins {
namespace {

using Parts = std::vector<std::string_view>;

Values values(const Value& self, const Parts& parts) {
  Values result;
  for (std::string_view part : parts) result.emplace_back(std::string(part), self.is_markup());
  return result;
}

Parts split_at(std::string_view text, std::string_view separator, std::int64_t limit) {
  Parts parts;
  for (std::size_t at = 0; limit != 0 && (at = text.find(separator)) != text.npos; --limit) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(text);
  return parts;
}

Parts split_at_last(std::string_view text, std::string_view separator, std::int64_t limit) {
  Parts parts;
  for (std::size_t at = 0; limit != 0 && (at = text.rfind(separator)) != text.npos; --limit) {
    parts.push_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Parts split_words(std::string_view text, std::int64_t limit) {
  Parts parts;
  for (text = strip(text, nullptr, true, false); !text.empty(); text = strip(text, nullptr, true, false)) {
    if (limit-- == 0) {
      parts.push_back(text);
      break;
    }
    std::size_t end = 0;
    for (std::size_t next = 0; next < text.size(); end = next)
      if (is_space(next_code_point(text, next))) break;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

Parts split_last_words(std::string_view text, std::int64_t limit) {
  Parts all = split_words(text, -1);
  if (limit < 0 || std::ssize(all) <= limit) return all;
  auto rest = all.size() - to_size(limit);
  const char* end = all[rest - 1].data() + all[rest - 1].size();
  Parts parts{text.substr(0, to_size(end - text.data()))};
  parts.insert(parts.end(), all.begin() + rest, all.end());
  return parts;
}

template <bool from_right>
Value split(Runtime& runtime, const Value& self, const Call& call) {
  Parameters given(call, {"sep", "maxsplit"});
  std::int64_t limit = given.integer(1, -1);
  runtime.budget().step(self.text().size() / 16);
  if (!given.given(0)) {
    Parts words = from_right ? split_last_words(self.text(), limit) : split_words(self.text(), limit);
    return make_list(values(self, words));
  }
  const std::string& separator = given.text(0);
  if (separator.empty()) fault("empty separator");
  return make_list(values(self, from_right ? split_at_last(self.text(), separator, limit)
                                           : split_at(self.text(), separator, limit)));
}

template <bool from_right>
Value partition(Runtime&, const Value& self, const Call& call) {
  const std::string separator = Parameters(call, {"sep"}, 1).text(0);
  if (separator.empty()) fault("empty separator");
  std::string_view text = self.text();
  std::size_t at = from_right ? text.rfind(separator) : text.find(separator);
  if (at == text.npos)
    return make_tuple(values(self, from_right ? Parts{"", "", text} : Parts{text, "", ""}));
  return make_tuple(values(self, {text.substr(0, at), separator, text.substr(at + separator.size())}));
}

Value splitlines(Runtime&, const Value& self, const Call& call) {
  Parameters given(call, {"keepends"});
  return make_list(values(self, split_lines(self.text(), given.truth(0, false))));
}

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  Parts lines;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    char32_t c = next_code_point(text, i);
    if (!ends_line(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(begin, (keep_ends ? i : end) - begin));
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

const Builtins& split_methods() {
  static const Builtins kMethods = {
      {"split", split<false>},         {"rsplit", split<true>},         {"splitlines", splitlines},
      {"partition", partition<false>}, {"rpartition", partition<true>},
  };
  return kMethods;
}

}  // namespace sluice::jinja::builtins
