#include "jinja/runtime.h"

#include <algorithm>

#include "jinja/builtins/builtins.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace sluice::jinja {
namespace {

std::string describe(const Value& value) {
  return value.is_none() ? "None" : type_name(value) + " object";
}

// Methods of Python that the sandbox of chat templates forbids because they modify their subject.
bool is_forbidden(const Value& value, std::string_view name) {
  constexpr std::string_view kList[] = {"append", "clear",  "extend",  "insert",
                                        "pop",    "remove", "reverse", "sort"};
  constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  if (is_list(value)) return std::find(std::begin(kList), std::end(kList), name) != std::end(kList);
  if (value.is_dict()) return std::find(std::begin(kDict), std::end(kDict), name) != std::end(kDict);
  return false;
}

}  // namespace

std::optional<Value> Runtime::find_attribute(const Value& object, const std::string& name) {
  if (object.is_object()) return object.object()->attribute(name);
  if (const builtins::Builtin* method = builtins::find_method(object, name)) {
    auto body = [this, method, object](const Call& call) { return (*method)(*this, object, call); };
    return Value(make<Function>(name, body));
  }
  if (!is_forbidden(object, name)) return std::nullopt;
  return make_undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, jinja::type_name(object)));
}

Value Runtime::attribute(const Value& object, const std::string& name) {
  require_defined(object);
  if (auto found = find_attribute(object, name)) return *found;
  if (object.is_dict())
    if (const Value* value = object.dict().find(std::string_view(name))) return *value;
  return make_undefined(fmt::format("'{}' has no attribute {}", describe(object), repr(name)));
}

Value Runtime::item(const Value& object, const Value& key) {
  require_defined(object);
  if (auto found = subscript(budget_, object, key)) return *found;
  if (!key.is_text())
    return make_undefined(fmt::format("{} has no element {}", describe(object), repr(budget_, key)));
  if (auto found = find_attribute(object, key.text())) return *found;
  return make_undefined(fmt::format("'{}' has no attribute {}", describe(object), repr(key.text())));
}

Value Runtime::call(const Value& callee, const Call& call) {
  require_defined(callee);
  if (!callee.is_object()) fault("'{}' object is not callable", type_name(callee));
  return callee.object()->call(call);
}

Value Runtime::filter(const std::string& name, const Value& subject, const Call& call) {
  budget_.step();
  const builtins::Builtin* filter = builtins::find_filter(name);
  if (filter == nullptr) fault("No filter named '{}'.", name);
  return (*filter)(*this, subject, call);
}

bool Runtime::test(const std::string& name, const Value& subject, const Call& call) {
  budget_.step();
  const builtins::Builtin* test = builtins::find_test(name);
  if (test == nullptr) fault("No test named '{}'.", name);
  return truth((*test)(*this, subject, call));
}

}  // namespace sluice::jinja
