// Combines the keywords of several schemas, and checks whether a given value satisfies them.
#include <algorithm>

#include "base/error.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "grammar/json/string.h"
#include "grammar/schema/compiler.h"
#include "grammar/schema/formats.h"

namespace sluice::grammar::schema {

unsigned Compiler::type_bits(const json::Value& schema, const json::Value& type) const {
  if (type.is_array()) {
    unsigned bits = 0;
    for (const json::Value& one : type.items) bits |= type_bits(schema, one);
    return bits;
  }
  constexpr std::pair<std::string_view, unsigned> kNames[] = {
      {"null", kNull},
      {"boolean", kBoolean},
      {"object", kObject},
      {"array", kArray},
      {"string", kString},
      {"integer", kInteger},
      {"number", kInteger | kFraction},
      {"$fraction", kFraction},
      {"any", kAllTypes},  // draft 3
  };
  for (const auto& [name, bits] : kNames)
    if (type.is_string() && type.string == name) {
      const json::Value* nullable = schema.find("nullable");  // OpenAPI
      return nullable != nullptr && nullable->is_boolean() && nullable->boolean ? bits | kNull : bits;
    }
  wrong(
      schema, "type",
      type.is_string() ? fmt::format("{} is not a type", quote(type.string)) : "expected the name of a type");
}

Constraints Compiler::merge(const Demands& demands) {
  Constraints result;
  check_time();
  for (const Demand& demand : demands) {
    if (demand.part == Demand::Part::never) result.types = 0;
    if (demand.part != Demand::Part::keywords) continue;
    result.schemas.push_back({demand.schema, demand.scope});
    for (const auto& [key, value] : demand.schema->members) merge_keyword(result, *demand.schema, key, value);
  }
  return result;
}

void Compiler::merge_number(Constraints& into, const json::Value& schema, const std::string& key,
                            const json::Value& value) {
  if (value.is_boolean() && key.starts_with("exclusive")) return;  // draft 4: changes the meaning of minimum
  if (!value.is_number()) wrong(schema, key, "expected a number");
  const auto flag = [&](const char* name) {
    const json::Value* found = schema.find(name);
    return found != nullptr && found->is_boolean() && found->boolean;
  };
  if (key == "minimum") into.numbers.raise(value.number, flag("exclusiveMinimum"));
  if (key == "maximum") into.numbers.lower(value.number, flag("exclusiveMaximum"));
  if (key == "exclusiveMinimum") into.numbers.raise(value.number, true);
  if (key == "exclusiveMaximum") into.numbers.lower(value.number, true);
  if (key == "multipleOf" || key == "divisibleBy" || key == "$not-multipleOf") {
    if (value.number.negative() || value.number.is_zero()) wrong(schema, key, "expected a number above 0");
    (key == "$not-multipleOf" ? into.not_multiples : into.multiples).push_back(value.number);
  }
}

void Compiler::merge_keyword(Constraints& into, const json::Value& schema, const std::string& key,
                             const json::Value& value) {
  const auto count = [&] {
    const std::int64_t number = value.is_number() ? value.number.as_count(kMaxLength) : -1;
    if (number < 0) wrong(schema, key, "expected a whole number that is not negative");
    return number;
  };
  if (key == "type") {
    into.types &= type_bits(schema, value);
  } else if (key == "const" || key == "enum") {
    if (key == "enum" && !value.is_array()) wrong(schema, key, "expected an array");
    std::vector<const json::Value*> values;
    if (key == "const") values.push_back(&value);
    if (key == "enum")
      for (const json::Value& one : value.items) values.push_back(&one);
    if (into.values)
      std::erase_if(values, [&](const json::Value* one) {
        count_steps(into.values->size());
        return std::ranges::none_of(*into.values, [&](const json::Value* other) { return *one == *other; });
      });
    into.values = std::move(values);
  } else if (key == "$not-enum") {
    for (const json::Value& one : value.items) into.excluded.push_back(&one);
  } else if (key == "minimum" || key == "maximum" || key == "exclusiveMinimum" || key == "exclusiveMaximum" ||
             key == "multipleOf" || key == "$not-multipleOf") {
    merge_number(into, schema, key, value);
  } else if (key == "minLength") {
    if (count() == kMaxLength) unsupported(schema, key, "so large a number is not supported");
    into.length.raise(count());
  } else if (key == "maxLength") {
    into.length.lower(count(), kMaxLength);
  } else if (key == "pattern" || key == "$not-pattern") {
    if (!value.is_string()) wrong(schema, key, "expected a string");
    pattern_regex(schema, key, value.string);
    (key == "pattern" ? into.patterns : into.not_patterns).push_back(&value);
  } else if (key == "format" || key == "$not-format") {
    if (!value.is_string()) wrong(schema, key, "expected a string");
    const Format::Kind kind = find_format(value.string).kind;
    if (kind == Format::Kind::unsupported && (into.types & kString) != 0)
      unsupported(schema, key,
                  fmt::format("the format {} is not supported: use a pattern", quote(value.string)));
    if (kind == Format::Kind::pattern)
      into.formats.push_back(key == "format" ? value.string : "!" + value.string);
    if (kind == Format::Kind::annotation && key == "$not-format") into.types &= ~unsigned{kString};
  } else if (key == "minItems") {
    into.items.raise(count());
  } else if (key == "maxItems") {
    into.items.lower(count());
  } else if (key == "minProperties") {
    into.properties.raise(count());
  } else if (key == "maxProperties") {
    into.properties.lower(count());
  } else if (key == "uniqueItems") {
    if (!value.is_boolean()) wrong(schema, key, "expected true or false");
    into.unique |= value.boolean;
  } else if (key == "prefixItems") {
    if (!value.is_array()) wrong(schema, key, "expected an array of schemas");
  } else if (key == "unevaluatedProperties" || key == "unevaluatedItems") {
    if (!value.is_boolean() && !value.is_object()) wrong(schema, key, "expected a schema");
  } else if (key == "required") {
    const bool names = value.is_array() && std::ranges::all_of(value.items, &json::Value::is_string);
    if (!names) wrong(schema, key, "expected an array of names");
  } else if (key == "properties" || key == "patternProperties") {
    if (!value.is_object()) wrong(schema, key, "expected an object");
  }
}

bool Compiler::admits(const Demands& demands, const json::Value& value) {
  for (const Demands& way : alternatives(demands))
    if (admits(merge(way), value)) return true;
  return false;
}

bool Compiler::admits(const Constraints& constraints, const json::Value& value) {
  const auto is_value = [&value](const json::Value* other) { return value == *other; };
  count_steps((constraints.values ? constraints.values->size() : 0) + constraints.excluded.size());
  if (constraints.values && std::ranges::none_of(*constraints.values, is_value)) return false;
  if (std::ranges::any_of(constraints.excluded, is_value)) return false;
  switch (value.kind) {
    case json::Value::Kind::null:
      return (constraints.types & kNull) != 0;
    case json::Value::Kind::boolean:
      return (constraints.types & kBoolean) != 0;
    case json::Value::Kind::number: {
      json::NumberRange range = constraints.numbers;
      range.integers = (constraints.types & kInteger) != 0;
      range.fractions = (constraints.types & kFraction) != 0;
      const auto divides = [&value](const json::Decimal& divisor) {
        return json::is_multiple(value.number, divisor);
      };
      return range.contains(value.number) && std::ranges::all_of(constraints.multiples, divides) &&
             std::ranges::none_of(constraints.not_multiples, divides);
    }
    case json::Value::Kind::string:
      return (constraints.types & kString) != 0 &&
             lexer_.matches(string_content(constraints), json::escaped(value.string));
    case json::Value::Kind::array:
      return (constraints.types & kArray) != 0 && admits_array(constraints, value);
    case json::Value::Kind::object:
      return (constraints.types & kObject) != 0 && admits_object(constraints, value);
  }
  return false;
}

bool Compiler::admits_object(const Constraints& constraints, const json::Value& value) {
  if (value.members.size() < constraints.properties.min || value.members.size() > constraints.properties.max)
    return false;
  for (const std::string& name : required_names(constraints)) {
    count_steps(value.members.size());
    if (value.find(name) == nullptr) return false;
  }
  for (const SomeProperty& some : find_some(constraints))
    if (std::ranges::none_of(value.members, [&](const auto& member) {
          return lexer_.matches(some.names, json::escaped(member.first)) &&
                 admits(demands_of(*some.value, scopes_.inner(some.by.scope)), member.second);
        }))
      return false;
  const regex::Id names = name_regex(constraints);
  return std::ranges::all_of(value.members, [&](const auto& member) {
    return lexer_.matches(names, json::escaped(member.first)) &&
           admits(property_demands(constraints, member.first), member.second);
  });
}

bool Compiler::admits_array(const Constraints& constraints, const json::Value& value) {
  if (value.items.size() < constraints.items.min || value.items.size() > constraints.items.max) return false;
  const std::vector<Contains> all = find_contains(constraints);
  std::vector<std::uint32_t> found(all.size(), 0);
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    std::uint32_t contained = 0;
    for (std::size_t j = 0; j < all.size(); ++j)
      if (admits(demands_of(*all[j].schema, scopes_.inner(all[j].by.scope)), value.items[i])) {
        contained |= 1u << j;
        ++found[j];
      }
    if (!admits(item_demands(constraints, i, contained), value.items[i])) return false;
    if (constraints.unique &&
        std::find(value.items.begin() + i + 1, value.items.end(), value.items[i]) != value.items.end())
      return false;
  }
  for (std::size_t j = 0; j < all.size(); ++j)
    if (found[j] < all[j].min || found[j] > all[j].max) return false;
  return true;
}

}  // namespace sluice::grammar::schema
