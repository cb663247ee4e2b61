// Filters that create or remove markup and encode addresses.
#include <cctype>

#include "jinja/builtins/builtins.h"
#include "jinja/builtins/parameters.h"
#include "jinja/operators.h"
#include "jinja/repr.h"
#include "jinja/unicode.h"

namespace sluice::jinja::builtins {
namespace {

// As urllib.parse.quote: `safe` characters are kept besides letters, digits and _.-~
std::string percent_encoded(std::string_view text, std::string_view safe) {
  std::string result;
  for (const char c : text) {
    const unsigned char byte = c;
    const bool plain =
        std::isalnum(byte) != 0 || (c != '\0' && std::string_view("_.-~").find(c) != std::string_view::npos);
    if (plain || safe.find(c) != std::string_view::npos)
      result += c;
    else
      result += fmt::format("%{:02X}", byte);
  }
  return result;
}

// Quotes a part of a query: blanks become plus signs, slashes are not safe.
std::string query_part(Budget& budget, const Value& value) {
  std::string quoted = percent_encoded(str(budget, value), "");
  return replace(budget, quoted, "%20", "+", -1);
}

Value urlencode(Runtime& runtime, const Value& value, const Call& call) {
  Parameters none(call, {});
  Budget& budget = runtime.budget();
  const bool plain = value.is_text() || !(value.is_dict() || value.is_sequence());
  if (plain) return Value(percent_encoded(str(budget, value), "/"));
  std::string result;
  const auto add = [&](const Value& key, const Value& part) {
    if (!result.empty()) result += '&';
    result += query_part(budget, key) + "=" + query_part(budget, part);
  };
  if (value.is_dict()) {
    for (const auto& [key, part] : value.dict().entries()) add(key, part);
    return Value(std::move(result));
  }
  for (const Value& pair : iterate(budget, value)) {
    const Values parts = iterate(budget, pair);
    if (parts.size() != 2) fault("urlencode needs pairs of a key and a value");
    add(parts[0], parts[1]);
  }
  return Value(std::move(result));
}

// Whether the text has characters that end the name of an attribute.
bool breaks_name(std::string_view name) {
  return name.find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos;
}

Value xmlattr(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"autospace"});
  Budget& budget = runtime.budget();
  require_defined(value);
  if (!value.is_dict()) fault("'{}' object has no attribute 'items'", type_name(value));
  std::string result;
  for (const auto& [key, part] : value.dict().entries()) {
    if (part.is_none() || part.is_undefined()) continue;
    const std::string name = str(budget, key);
    if (breaks_name(name)) fault("Invalid character in attribute name: {}", repr(name));
    if (!result.empty()) result += ' ';
    result += escape(budget, key).text() + "=\"" + escape(budget, part).text() + "\"";
  }
  if (given.truth(0, true) && !result.empty()) result.insert(0, " ");
  return Value(std::move(result));
}

// The named entities of HTML that MarkupSafe unescapes.
std::string unescaped(Budget& budget, std::string text) {
  constexpr std::string_view kNames[][2] = {{"&lt;", "<"},          {"&gt;", ">"},  {"&quot;", "\""},
                                            {"&#34;", "\""},        {"&#39;", "'"}, {"&apos;", "'"},
                                            {"&nbsp;", "\xC2\xA0"}, {"&amp;", "&"}};
  for (const auto& [name, character] : kNames) text = replace(budget, text, name, character, -1);
  return text;
}

// Removes comments and tags, and merges blanks.
Value striptags(Runtime& runtime, const Value& value, const Call& call) {
  Parameters none(call, {});
  Budget& budget = runtime.budget();
  std::string text = str(budget, value);
  for (const auto& [open, close] : {std::pair<std::string_view, std::string_view>{"<!--", "-->"}, {"<", ">"}})
    for (std::size_t at = 0; (at = text.find(open, at)) != std::string::npos;) {
      const std::size_t end = text.find(close, at);
      if (end == std::string::npos) break;
      text.erase(at, end + close.size() - at);
    }
  std::string result;
  bool blank = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    const bool space = is_space(next_code_point(text, i));
    if (!space && blank && !result.empty()) result += ' ';
    blank = space;
    if (!space) result += text.substr(start, i - start);
  }
  return Value(unescaped(budget, std::move(result)));
}

}  // namespace

const Builtins& markup_filters() {
  static const Builtins kFilters = {
      {"urlencode", urlencode},
      {"xmlattr", xmlattr},
      {"striptags", striptags},
  };
  return kFilters;
}

}  // namespace sluice::jinja::builtins
