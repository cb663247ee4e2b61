// The negation of a schema, as a schema: a value that violates one of its keywords. Keywords that begin with
// "$not-" exist only here.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "grammar/schema/compiler.h"

namespace sluice::grammar::schema {
namespace {

json::Value name_value(std::string_view value) {
  return json::Value::of(std::string(value));
}

json::Value of_type(std::string_view type, std::string keyword, json::Value value) {
  return json::Value::object({{"type", name_value(type)}, {std::move(keyword), std::move(value)}});
}

json::Value all_of(std::vector<json::Value> parts) {
  return json::Value::object({{"allOf", json::Value::array(std::move(parts))}});
}

bool is_never(const json::Value& schema) {
  return schema.is_boolean() && !schema.boolean;
}

bool flag(const json::Value& schema, std::string_view name) {
  const json::Value* found = schema.find(name);
  return found != nullptr && found->is_boolean() && found->boolean;
}

}  // namespace

const json::Value& Compiler::negation(const json::Value& schema) {
  if (const auto found = negations_.find(&schema); found != negations_.end()) {
    if (found->second == nullptr)
      unsupported(schema, "not", "the negation of a recursive schema is not supported");
    return *found->second;
  }
  negations_[&schema] = nullptr;
  try {
    json::Value negated = make_negation(schema);
    count_made(negated);
    const json::Value& made = document_.keep(std::move(negated), schema);
    negations_[&schema] = &made;
    return made;
  } catch (...) {
    negations_.erase(&schema);
    throw;
  }
}

void Compiler::count_made(const json::Value& schema, std::size_t times) {
  constexpr std::size_t kMaxMade = 1'000'000;
  check_time();
  made_values_ += times * schema.count();
  if (made_values_ > kMaxMade)
    fail(ErrorKind::resource, "schema: {}: its negations and dependencies expand to more than {} values",
         document_.path(schema), kMaxMade);
}

json::Value Compiler::make_negation(const json::Value& schema) {
  if (schema.is_boolean()) return json::Value::of(!schema.boolean);
  if (!schema.is_object())
    fail(ErrorKind::input, "schema: {}: a schema is an object, true or false", document_.path(schema));
  Choices choices;
  const json::Value* reference = schema.find("$ref");
  if (reference != nullptr && document_.reference_alone()) {
    negate_keyword(schema, "$ref", *reference, choices);
  } else {
    for (const auto& [key, value] : schema.members) negate_keyword(schema, key, value, choices);
  }
  if (choices.empty()) return json::Value::of(false);
  if (choices.size() == 1) return std::move(choices[0]);
  return json::Value::object({{"anyOf", json::Value::array(std::move(choices))}});
}

// None of the branches holds, or two of them do.
void Compiler::negate_one_of(const json::Value& schema, const json::Value& one_of, Choices& choices) {
  if (!one_of.is_array()) wrong(schema, "oneOf", "expected an array of schemas");
  std::vector<json::Value> none;
  for (const json::Value& part : one_of.items) none.push_back(negation(part));
  choices.push_back(all_of(std::move(none)));
  count_made(one_of, one_of.items.size());
  for (std::size_t i = 0; i < one_of.items.size(); ++i)
    for (std::size_t j = i + 1; j < one_of.items.size(); ++j)
      choices.push_back(all_of({one_of.items[i], one_of.items[j]}));
}

bool Compiler::negate_applicator(const json::Value& schema, const std::string& key, const json::Value& value,
                                 Choices& choices) {
  if (key == "$ref") {
    if (!value.is_string()) wrong(schema, key, "expected a string");
    choices.push_back(negation(document_.resolve(schema, value.string)));
  } else if (key == "anyOf" || key == "allOf") {
    if (!value.is_array()) wrong(schema, key, "expected an array of schemas");
    std::vector<json::Value> parts;
    for (const json::Value& part : value.items) parts.push_back(negation(part));
    if (key == "anyOf") parts = {all_of(std::move(parts))};
    for (json::Value& part : parts) choices.push_back(std::move(part));
  } else if (key == "oneOf") {
    negate_one_of(schema, value, choices);
  } else if (key == "if") {
    count_made(value);
    if (const json::Value* then = schema.find("then")) choices.push_back(all_of({value, negation(*then)}));
    if (const json::Value* otherwise = schema.find("else"))
      choices.push_back(all_of({negation(value), negation(*otherwise)}));
  } else if (key == "not") {
    count_made(value);
    choices.push_back(value);
  } else {
    return false;
  }
  return true;
}

bool Compiler::negate_value(const json::Value& schema, const std::string& key, const json::Value& value,
                            Choices& choices) {
  if (key == "type") {
    const unsigned others = kAllTypes & ~type_bits(schema, value);
    if (others == 0) return true;
    json::Value names = json::Value::array({});
    constexpr std::pair<unsigned, const char*> kNames[] = {
        {kNull, "null"},     {kBoolean, "boolean"}, {kObject, "object"},     {kArray, "array"},
        {kString, "string"}, {kInteger, "integer"}, {kFraction, "$fraction"}};
    for (const auto& [bit, name] : kNames)
      if ((others & bit) != 0) names.items.push_back(name_value(name));
    choices.push_back(json::Value::object({{"type", std::move(names)}}));
  } else if (key == "const") {
    choices.push_back(json::Value::object({{"$not-enum", json::Value::array({value})}}));
  } else if (key == "enum") {
    choices.push_back(json::Value::object({{"$not-enum", value}}));
  } else if (key == "minimum" || key == "maximum") {
    const bool low = key == "minimum",
               exclusive = flag(schema, low ? "exclusiveMinimum" : "exclusiveMaximum");
    const std::string opposite =
        low ? (exclusive ? "maximum" : "exclusiveMaximum") : (exclusive ? "minimum" : "exclusiveMinimum");
    choices.push_back(of_type("number", opposite, value));
  } else if (key == "exclusiveMinimum" || key == "exclusiveMaximum") {
    if (value.is_number())
      choices.push_back(of_type("number", key == "exclusiveMinimum" ? "maximum" : "minimum", value));
  } else if (key == "multipleOf") {
    choices.push_back(of_type("number", "$not-multipleOf", value));
  } else if (key == "pattern") {
    choices.push_back(of_type("string", "$not-pattern", value));
  } else if (key == "format") {
    if (value.is_string()) choices.push_back(of_type("string", "$not-format", value));
  } else {
    return false;
  }
  return true;
}

bool Compiler::negate_count(const json::Value& schema, const std::string& key, const json::Value& value,
                            Choices& choices) {
  constexpr std::array<std::array<const char*, 3>, 3> kBounds = {
      {{"string", "minLength", "maxLength"},
       {"array", "minItems", "maxItems"},
       {"object", "minProperties", "maxProperties"}}};
  for (const auto& [type, min, max] : kBounds) {
    if (key != min && key != max) continue;
    const std::int64_t number = value.is_number() ? value.number.as_count(kMaxLength) : -1;
    if (number < 0) wrong(schema, key, "expected a whole number that is not negative");
    const std::int64_t bound = key == min ? number - 1 : number + 1;
    if (bound >= 0)
      choices.push_back(of_type(type, key == min ? max : min, json::Value::of(json::Decimal(bound))));
    return true;
  }
  return false;
}

// There is a property with such a name and value.
json::Value Compiler::some_property(json::Value names, json::Value value) {
  return of_type("object", "$some-property",
                 json::Value::object({{"names", std::move(names)}, {"value", std::move(value)}}));
}

bool Compiler::negate_object(const json::Value& schema, const std::string& key, const json::Value& value,
                             Choices& choices) {
  const auto check_object = [&](const json::Value* object) {
    if (object != nullptr && !object->is_object()) wrong(schema, key, "expected an object");
    return object != nullptr;
  };
  if (key == "required") {
    if (!value.is_array()) wrong(schema, key, "expected an array of names");
    for (const json::Value& name : value.items)
      choices.push_back(
          of_type("object", "properties", json::Value::object({{name.string, json::Value::of(false)}})));
  } else if (key == "properties") {
    check_object(&value);
    for (const auto& [name, part] : value.members) {
      const json::Value& opposite = negation(part);
      if (is_never(opposite)) continue;
      json::Value choice = of_type("object", "required", json::Value::array({json::Value::of(name)}));
      choice.members.emplace_back("properties", json::Value::object({{name, opposite}}));
      count_made(choice);
      choices.push_back(std::move(choice));
    }
  } else if (key == "patternProperties") {
    check_object(&value);
    for (const auto& [pattern, part] : value.members) {
      const json::Value& opposite = negation(part);
      if (!is_never(opposite))
        choices.push_back(
            some_property(json::Value::object({{"pattern", json::Value::of(pattern)}}), opposite));
    }
  } else if (key == "additionalProperties") {
    const json::Value& opposite = negation(value);
    if (is_never(opposite)) return true;
    json::Value known = json::Value::array({});
    if (const json::Value* properties = schema.find("properties"); check_object(properties))
      for (const auto& [name, part] : properties->members) known.items.push_back(json::Value::of(name));
    std::vector<json::Value> names = {json::Value::object({{"$not-enum", std::move(known)}})};
    if (const json::Value* patterns = schema.find("patternProperties"); check_object(patterns))
      for (const auto& [pattern, part] : patterns->members)
        names.push_back(json::Value::object({{"$not-pattern", json::Value::of(pattern)}}));
    choices.push_back(some_property(all_of(std::move(names)), opposite));
  } else if (key == "propertyNames") {
    const json::Value& opposite = negation(value);
    if (!is_never(opposite)) choices.push_back(some_property(opposite, json::Value::of(true)));
  } else {
    return false;
  }
  return true;
}

// The property is present, and what it requires is not.
bool Compiler::negate_dependencies(const json::Value& schema, const std::string& key,
                                   const json::Value& value, Choices& choices) {
  if (key != "dependencies" && key != "dependentRequired" && key != "dependentSchemas") return false;
  if (!value.is_object()) wrong(schema, key, "expected an object");
  for (const auto& [name, needs] : value.members) {
    const json::Value present = of_type("object", "required", json::Value::array({json::Value::of(name)}));
    if (needs.is_object() || needs.is_boolean()) {
      choices.push_back(all_of({present, negation(needs)}));
      continue;
    }
    for (const json::Value& need : needs.is_array() ? needs.items : std::vector<json::Value>{needs})
      choices.push_back(
          all_of({present, of_type("object", "properties",
                                   json::Value::object({{need.string, json::Value::of(false)}}))}));
  }
  return true;
}

bool Compiler::negate_array(const json::Value& schema, const std::string& key, const json::Value& value,
                            Choices& choices) {
  if (key == "prefixItems" || (key == "items" && value.is_array())) {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const json::Value& opposite = negation(value.items[i]);
      if (is_never(opposite)) continue;
      json::Value choice =
          of_type("array", "minItems", json::Value::of(json::Decimal(static_cast<std::int64_t>(i) + 1)));
      std::vector<json::Value> first(i, json::Value::of(true));
      first.push_back(opposite);
      choice.members.emplace_back("prefixItems", json::Value::array(std::move(first)));
      choices.push_back(std::move(choice));
    }
  } else if ((key == "items" && schema.find("prefixItems") == nullptr)) {
    const json::Value& opposite = negation(value);
    if (!is_never(opposite)) choices.push_back(of_type("array", "contains", opposite));
  } else if (key == "contains") {
    negate_contains(schema, value, choices);
  } else {
    return false;
  }
  return true;
}

// Too few items match, or too many.
void Compiler::negate_contains(const json::Value& schema, const json::Value& value, Choices& choices) {
  const Contains contains = read_contains({&schema, nullptr}, value);
  count_made(value, 2);
  const auto counted = [&](std::uint32_t min, std::uint32_t max) {
    json::Value choice = of_type("array", "contains", value);
    choice.members.emplace_back("minContains", json::Value::of(json::Decimal(min)));
    if (max != regex::kNoLimit)
      choice.members.emplace_back("maxContains", json::Value::of(json::Decimal(max)));
    choices.push_back(std::move(choice));
  };
  if (contains.min == 1) choices.push_back(of_type("array", "items", negation(value)));
  if (contains.min > 1) counted(0, contains.min - 1);
  if (contains.max != regex::kNoLimit) counted(contains.max + 1, regex::kNoLimit);
}

void Compiler::negate_keyword(const json::Value& schema, const std::string& key, const json::Value& value,
                              Choices& choices) {
  if (negate_applicator(schema, key, value, choices) || negate_value(schema, key, value, choices) ||
      negate_count(schema, key, value, choices) || negate_object(schema, key, value, choices) ||
      negate_dependencies(schema, key, value, choices) || negate_array(schema, key, value, choices))
    return;
  constexpr std::string_view kRefused[] = {
      "items",       "additionalItems", "uniqueItems", "unevaluatedProperties", "unevaluatedItems",
      "$dynamicRef", "$recursiveRef",   "$not-enum",   "$not-pattern",          "$not-multipleOf",
      "$not-format", "$some-property"};
  const bool says_nothing = value.is_boolean() ? value.boolean == (key != "uniqueItems")
                                               : value.is_object() && value.members.empty();
  if (!says_nothing && std::ranges::find(kRefused, key) != std::end(kRefused))
    unsupported(schema, key, "its negation is not supported");
}

}  // namespace sluice::grammar::schema
