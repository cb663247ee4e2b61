#include "base/integer_cast.h"
#include "jinja/builtins/builtins.h"
#include "jinja/builtins/format.h"
#include "jinja/builtins/parameters.h"
#include "jinja/json.h"
#include "jinja/operators.h"
#include "jinja/repr.h"
#include "jinja/unicode.h"

namespace sluice::jinja::builtins {
namespace {

Value soft_str(Runtime& runtime, const Value& value) {
  return value.is_text() ? value : Value(str(runtime.budget(), value));
}

Value string(Runtime& runtime, const Value& value, const Call& call) {
  Parameters none(call, {});
  return soft_str(runtime, value);
}

// A filter that calls the method of the same name on the value's text.
template <const char* const& name>
Value by_method(Runtime& runtime, const Value& value, const Call& call) {
  Value text = soft_str(runtime, value);
  return (*find_method(text, name))(runtime, text, call);
}
constexpr const char* kStrip = "strip";
constexpr const char* kUpper = "upper";
constexpr const char* kLower = "lower";
constexpr const char* kCapitalize = "capitalize";

// Unlike the method, words begin only after blanks, dashes and opening brackets.
Value title_of(Runtime& runtime, const Value& value, const Call&) {
  Value text = soft_str(runtime, value);
  std::string result, rest;  // `rest` is that of the word: its end decides about a sigma
  bool starts = true;
  const std::string& bytes = text.text();
  for (std::size_t i = 0; i < bytes.size();) {
    std::size_t start = i;
    char32_t c = next_code_point(bytes, i);
    std::string_view one = std::string_view(bytes).substr(start, i - start);
    bool delimiter = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    if (delimiter || starts) result += to_lower(std::exchange(rest, {})) + to_upper(one);
    if (!delimiter && !starts) rest += one;
    starts = delimiter;
  }
  result += to_lower(rest);
  return Value(std::move(result));
}

Value replace_filter(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"old", "new", "count"}, 2);
  Budget& budget = runtime.budget();
  std::int64_t count = given.given(2) ? given.integer(2, -1) : -1;
  return Value(
      replace(budget, str(budget, value), str(budget, given.value(0)), str(budget, given.value(1)), count));
}

Value safe(Runtime& runtime, const Value& value, const Call&) {
  return Value(str(runtime.budget(), value), true);
}
Value escape_filter(Runtime& runtime, const Value& value, const Call&) {
  return escape(runtime.budget(), value);
}
Value forceescape(Runtime& runtime, const Value& value, const Call&) {
  return escape(runtime.budget(), Value(str(runtime.budget(), value)));
}

Value indent(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"width", "first", "blank"});
  require_defined(value);
  if (!value.is_text()) fault("indent needs a string, not {}", type_name(value));
  Budget& budget = runtime.budget();
  std::string indention;
  if (given.find(0) && given.value(0).is_text()) {
    indention = given.text(0);
  } else if (std::int64_t width = given.integer(0, 4); width > 0) {
    budget.grow(to_size(width));
    indention.assign(to_size(width), ' ');
  }
  std::string text = value.text() + "\n", result = given.truth(1, false) ? indention : "";
  bool first = true, blank = given.truth(2, false);
  for (std::string_view line : split_lines(text, false)) {
    if (!std::exchange(first, false)) result += (blank || !line.empty()) ? "\n" + indention : "\n";
    result += line;
    if (result.size() > budget.limits().output_bytes) budget.grow(result.size());
  }
  return Value(std::move(result), value.is_markup());
}

Value tojson(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"ensure_ascii", "indent", "separators", "sort_keys"});
  Budget& budget = runtime.budget();
  JsonStyle style;
  style.ascii = given.truth(0, false);
  style.sort_keys = given.truth(3, false);
  if (given.given(1)) {
    style.item_separator = ",";
    std::int64_t width = given.value(1).is_text() ? 0 : given.integer(1, 0);
    if (width > 0) budget.grow(to_size(width));
    style.indent =
        given.value(1).is_text() ? given.text(1) : std::string(width > 0 ? to_size(width) : 0, ' ');
  }
  if (given.given(2)) {
    Values separators = iterate(budget, given.value(2));
    if (separators.size() != 2 || !separators[0].is_text() || !separators[1].is_text())
      fault("separators are two strings, for items and for keys");
    style.item_separator = separators[0].text();
    style.key_separator = separators[1].text();
  }
  return Value(to_json(budget, value, style));
}

Value format(Runtime& runtime, const Value& value, const Call& call) {
  if (!call.args.empty() && !call.named.empty())
    fault("can't handle positional and keyword arguments at the same time");
  if (call.named.empty())
    return percent_format(runtime.budget(), soft_str(runtime, value), make_tuple(call.args));
  Dict named;
  for (const auto& [name, argument] : call.named) named.set(Value(name), argument);
  return percent_format(runtime.budget(), soft_str(runtime, value), make_dict(std::move(named)));
}

Value center(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"width"});
  Value text = soft_str(runtime, value);
  return (*find_method(text, "center"))(runtime, text, Call{{Value(given.integer(0, 80))}, {}});
}

Value wordcount(Runtime& runtime, const Value& value, const Call&) {
  const std::string text = str(runtime.budget(), value);
  std::int64_t words = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size();) {
    char32_t c = next_code_point(text, i);
    bool word = is_alpha(c) || is_decimal(c) || c == '_';
    words += word && !inside;
    inside = word;
  }
  return words;
}

Value default_filter(Runtime&, const Value& value, const Call& call) {
  Parameters given(call, {"default_value", "boolean"});
  bool missing = value.is_undefined() || (given.truth(1, false) && !truth(value));
  if (!missing) return value;
  return given.find(0) ? given.value(0) : Value("");
}

}  // namespace

const Builtins& text_filters() {
  static const Builtins kFilters = {
      {"string", string},
      {"trim", by_method<kStrip>},
      {"upper", by_method<kUpper>},
      {"lower", by_method<kLower>},
      {"capitalize", by_method<kCapitalize>},
      {"title", title_of},
      {"replace", replace_filter},
      {"safe", safe},
      {"escape", escape_filter},
      {"e", escape_filter},
      {"forceescape", forceescape},
      {"indent", indent},
      {"tojson", tojson},
      {"format", format},
      {"center", center},
      {"wordcount", wordcount},
      {"default", default_filter},
      {"d", default_filter},
  };
  return kFilters;
}

}  // namespace sluice::jinja::builtins
