// Filters that apply another filter, a test or an attribute lookup to every item.
#include <charconv>

#include "jinja/builtins/builtins.h"
#include "jinja/builtins/parameters.h"
#include "jinja/operators.h"
#include "jinja/unicode.h"

namespace sluice::jinja::builtins {
namespace {

Call rest_of(const Call& call, std::size_t from) {
  return {Values(call.args.begin() + from, call.args.end()), call.named};
}

const std::string& name_of(const Value& value) {
  if (!value.is_text()) fault("the name of a filter or test is a string, not {}", type_name(value));
  return value.text();
}

Value map(Runtime& runtime, const Value& value, const Call& call) {
  if (!truth(value)) return make_iterator({});  // as in jinja2, any false value counts as empty
  Values items = iterate(runtime.budget(), value), results;
  if (items.empty()) return make_iterator({});
  if (call.args.empty()) {
    Parameters given(call, {"attribute", "default"});
    if (given.find(0) == nullptr) fault("map requires a filter argument");
    for (const Value& item : items) results.push_back(at_path(runtime, item, given.given(0), given.given(1)));
    return make_iterator(std::move(results));
  }
  const std::string& name = name_of(call.args[0]);
  Call rest = rest_of(call, 1);
  for (const Value& item : items) results.push_back(runtime.filter(name, item, rest));
  return make_iterator(std::move(results));
}

template <bool wanted, bool by_attribute>
Value select(Runtime& runtime, const Value& value, const Call& call) {
  if (!truth(value)) return make_iterator({});
  Values items = iterate(runtime.budget(), value), kept;
  if (items.empty()) return make_iterator({});
  constexpr std::size_t kOffset = by_attribute ? 1 : 0;
  if (call.args.size() < kOffset) fault("Missing parameter for attribute name");
  bool has_test = call.args.size() > kOffset;
  Call rest = has_test ? rest_of(call, kOffset + 1) : Call{};
  for (Value& item : items) {
    Value subject = by_attribute ? at_path(runtime, item, &call.args[0]) : item;
    bool passes = has_test ? runtime.test(name_of(call.args[kOffset]), subject, rest) : truth(subject);
    if (passes == wanted) kept.push_back(std::move(item));
  }
  return make_iterator(std::move(kept));
}

Value attr(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"name"}, 1);
  if (value.is_dict() && !find_method(value, given.text(0)))
    return make_undefined(fmt::format("'dict object' has no attribute '{}'", given.text(0)));
  return runtime.attribute(value, given.text(0));
}

Value random(Runtime&, const Value&, const Call&) {
  fault("the filter 'random' chooses another item every time, which no prompt can use");
}

}  // namespace

Value at_path(Runtime& runtime, Value item, const Value* path, const Value* missing) {
  if (path == nullptr) return item;
  auto step = [&](const Value& key) {
    item = runtime.item(item, key);
    if (missing != nullptr && item.is_undefined()) item = *missing;
  };
  if (!path->is_text()) {
    step(*path);
    return item;
  }
  std::string_view rest = path->text();
  while (true) {
    std::size_t dot = std::min(rest.find('.'), rest.size());
    std::string_view part = rest.substr(0, dot);
    std::int64_t index = 0;
    bool digits = !part.empty() && part.find_first_not_of("0123456789") == part.npos &&
                  std::from_chars(part.data(), part.data() + part.size(), index).ec == std::errc();
    step(digits ? Value(index) : Value(part));
    if (dot == rest.size()) return item;
    rest.remove_prefix(dot + 1);
  }
}

Value ignore_case(const Value& value) {
  return value.is_text() ? Value(to_lower(value.text())) : value;
}

const Builtins& selection_filters() {
  static const Builtins kFilters = {
      {"map", map},
      {"select", select<true, false>},
      {"reject", select<false, false>},
      {"selectattr", select<true, true>},
      {"rejectattr", select<false, true>},
      {"attr", attr},
      {"random", random},
  };
  return kFilters;
}

}  // namespace sluice::jinja::builtins
