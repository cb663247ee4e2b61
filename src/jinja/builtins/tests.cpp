// The tests for `is`.
#include <unordered_map>

#include "jinja/builtins/builtins.h"
#include "jinja/builtins/parameters.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace sluice::jinja::builtins {
namespace {

template <class Predicate>
Value nullary(const Call& call, Predicate predicate) {
  Parameters none(call, {});
  return Value(bool{predicate()});
}

template <Comparison comparison>
Value comparing(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"other"}, 1);
  return compare(runtime.budget(), comparison, value, given.value(0));
}

std::int64_t remainder(Runtime& runtime, const Value& value, std::int64_t divisor) {
  Value result = binary(runtime.budget(), Binary::modulo, value, divisor);
  return result.is_integer() ? result.integer() : result.real() == 0 ? 0 : result.real() == 1 ? 1 : 2;
}

Value odd(Runtime& runtime, const Value& value, const Call&) {
  return remainder(runtime, value, 2) == 1;
}
Value even(Runtime& runtime, const Value& value, const Call&) {
  return remainder(runtime, value, 2) == 0;
}

Value divisibleby(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"num"}, 1);
  Value rest = binary(runtime.budget(), Binary::modulo, value, given.value(0));
  return !truth(rest);
}

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_text() || value.is_sequence() || value.is_dict();
}

bool has_length_and_items(const Value& value) {
  return value.is_undefined() || value.is_text() || value.is_dict() || is_list(value) || is_tuple(value) ||
         is_kind(value, SequenceKind::range);
}

bool is_in_case(Runtime& runtime, const Value& value, const char* method) {
  Value text(str(runtime.budget(), value));
  return truth((*find_method(text, method))(runtime, text, {}));
}

Value sameas(Runtime&, const Value& value, const Call& call) {
  return identical(value, Parameters(call, {"other"}, 1).value(0));
}

Value is_filter(Runtime&, const Value& value, const Call&) {
  return value.is_text() && find_filter(value.text());
}
Value is_test(Runtime&, const Value& value, const Call&) {
  return value.is_text() && find_test(value.text());
}

#define SLUICE_PREDICATE(condition) \
  [](Runtime&, const Value& value, const Call& call) { return nullary(call, [&] { return (condition); }); }

using Table = std::unordered_map<std::string_view, Builtin>;

const Table& type_tests() {
  static const Table kTests = {
      {"defined", SLUICE_PREDICATE(!value.is_undefined())},
      {"undefined", SLUICE_PREDICATE(value.is_undefined())},
      {"none", SLUICE_PREDICATE(value.is_none())},
      {"boolean", SLUICE_PREDICATE(value.is_boolean())},
      {"true", SLUICE_PREDICATE(value.is_boolean() && value.boolean())},
      {"false", SLUICE_PREDICATE(value.is_boolean() && !value.boolean())},
      {"integer", SLUICE_PREDICATE((value.is_integer() && !value.is_boolean()) || value.is_big_integer())},
      {"float", SLUICE_PREDICATE(value.is_real())},
      {"number", SLUICE_PREDICATE(value.is_number() || value.is_big_integer())},
      {"string", SLUICE_PREDICATE(value.is_text())},
      {"mapping", SLUICE_PREDICATE(value.is_dict())},
      {"sequence", SLUICE_PREDICATE(has_length_and_items(value))},
      {"iterable", SLUICE_PREDICATE(is_iterable(value))},
      {"callable",
       SLUICE_PREDICATE(value.is_undefined() || (value.is_object() && value.object()->callable()))},
      {"escaped", SLUICE_PREDICATE(value.is_markup())},
  };
  return kTests;
}

#undef SLUICE_PREDICATE

const Table& value_tests() {
  static const Table kTests = {
      {"odd", odd},
      {"even", even},
      {"divisibleby", divisibleby},
      {"lower",
       [](Runtime& r, const Value& value, const Call&) { return Value(is_in_case(r, value, "islower")); }},
      {"upper",
       [](Runtime& r, const Value& value, const Call&) { return Value(is_in_case(r, value, "isupper")); }},
      {"sameas", sameas},
      {"filter", is_filter},
      {"test", is_test},
      {"in", comparing<Comparison::in>},
      {"==", comparing<Comparison::equal>},
      {"eq", comparing<Comparison::equal>},
      {"equalto", comparing<Comparison::equal>},
      {"!=", comparing<Comparison::not_equal>},
      {"ne", comparing<Comparison::not_equal>},
      {"<", comparing<Comparison::less>},
      {"lt", comparing<Comparison::less>},
      {"lessthan", comparing<Comparison::less>},
      {"<=", comparing<Comparison::less_equal>},
      {"le", comparing<Comparison::less_equal>},
      {">", comparing<Comparison::greater>},
      {"gt", comparing<Comparison::greater>},
      {"greaterthan", comparing<Comparison::greater>},
      {">=", comparing<Comparison::greater_equal>},
      {"ge", comparing<Comparison::greater_equal>},
  };
  return kTests;
}

}  // namespace

const Builtin* find_test(std::string_view name) {
  for (const Table* table : {&type_tests(), &value_tests()})
    if (auto found = table->find(name); found != table->end()) return &found->second;
  return nullptr;
}

}  // namespace sluice::jinja::builtins
