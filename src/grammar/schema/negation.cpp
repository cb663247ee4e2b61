// What does not fulfil a schema, as a schema again: a value that breaks one of its keywords. Keywords that
// begin with "$not-" exist only here.
#include <algorithm>

#include "base/error.h"
#include "grammar/schema/compiler.h"

namespace sluice::grammar {
namespace {

JsonValue name_value(std::string_view value) {
  return JsonValue::of(std::string(value));
}

JsonValue of_type(std::string_view type, std::string keyword, JsonValue value) {
  return JsonValue::object({{"type", name_value(type)}, {std::move(keyword), std::move(value)}});
}

}  // namespace

const JsonValue& SchemaCompiler::negation(const JsonValue& schema) {
  if (const auto found = negations_.find(&schema); found != negations_.end()) {
    if (found->second == nullptr)
      unsupported(schema, "not", "the negation of a recursive schema is not supported");
    return *found->second;
  }
  negations_[&schema] = nullptr;
  try {
    const JsonValue& made = document_.keep(make_negation(schema), schema);
    negations_[&schema] = &made;
    return made;
  } catch (...) {
    negations_.erase(&schema);
    throw;
  }
}

JsonValue SchemaCompiler::make_negation(const JsonValue& schema) {
  if (schema.is_boolean()) return JsonValue::of(!schema.boolean);
  if (!schema.is_object())
    fail(ErrorKind::input, "schema: {}: a schema is an object, true or false", document_.path(schema));
  std::vector<JsonValue> choices;
  const JsonValue* reference = schema.find("$ref");
  if (reference != nullptr && document_.reference_alone()) {
    negate_keyword(schema, "$ref", *reference, choices);
  } else {
    for (const auto& [key, value] : schema.members) negate_keyword(schema, key, value, choices);
  }
  if (choices.empty()) return JsonValue::of(false);
  if (choices.size() == 1) return std::move(choices[0]);
  return JsonValue::object({{"anyOf", JsonValue::array(std::move(choices))}});
}

void SchemaCompiler::negate_keyword(const JsonValue& schema, const std::string& key, const JsonValue& value,
                                    std::vector<JsonValue>& choices) {
  const auto count = [&](std::int64_t change) {
    const std::int64_t number = value.is_number() ? value.number.as_count(kMaxCount) : -1;
    if (number < 0) wrong(schema, key, "expected a whole number that is not negative");
    return number + change;
  };
  const auto counted = [&](std::string_view type, std::string opposite, std::int64_t change) {
    const std::int64_t bound = count(change);
    if (bound >= 0) choices.push_back(of_type(type, std::move(opposite), JsonValue::of(Decimal(bound))));
  };
  const auto flag = [&](const char* name) {
    const JsonValue* found = schema.find(name);
    return found != nullptr && found->is_boolean() && found->boolean;
  };

  if (key == "$ref") {
    if (!value.is_string()) wrong(schema, key, "expected a string");
    choices.push_back(negation(document_.resolve(schema, value.string)));
  } else if (key == "type") {
    const unsigned others = kAllTypes & ~type_bits(schema, value);
    if (others == 0) return;
    JsonValue names = JsonValue::array({});
    constexpr std::pair<unsigned, const char*> kNames[] = {
        {kNull, "null"},     {kBoolean, "boolean"}, {kObject, "object"},     {kArray, "array"},
        {kString, "string"}, {kInteger, "integer"}, {kFraction, "$fraction"}};
    for (const auto& [bit, name] : kNames)
      if ((others & bit) != 0) names.items.push_back(name_value(name));
    choices.push_back(JsonValue::object({{"type", std::move(names)}}));
  } else if (key == "const") {
    choices.push_back(JsonValue::object({{"$not-enum", JsonValue::array({value})}}));
  } else if (key == "enum") {
    choices.push_back(JsonValue::object({{"$not-enum", value}}));
  } else if (key == "minimum" || key == "maximum") {
    const bool low = key == "minimum", exclusive = flag(low ? "exclusiveMinimum" : "exclusiveMaximum");
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
  } else if (key == "minLength") {
    counted("string", "maxLength", -1);
  } else if (key == "maxLength") {
    counted("string", "minLength", 1);
  } else if (key == "minItems") {
    counted("array", "maxItems", -1);
  } else if (key == "maxItems") {
    counted("array", "minItems", 1);
  } else if (key == "minProperties") {
    counted("object", "maxProperties", -1);
  } else if (key == "maxProperties") {
    counted("object", "minProperties", 1);
  } else if (key == "required") {
    if (!value.is_array()) wrong(schema, key, "expected an array of names");
    for (const JsonValue& name : value.items)
      choices.push_back(
          of_type("object", "properties", JsonValue::object({{name.string, JsonValue::of(false)}})));
  } else if (key == "properties") {
    if (!value.is_object()) wrong(schema, key, "expected an object");
    for (const auto& [name, part] : value.members) {
      const JsonValue& opposite = negation(part);
      if (opposite.is_boolean() && !opposite.boolean) continue;
      JsonValue choice = of_type("object", "required", JsonValue::array({JsonValue::of(name)}));
      choice.members.emplace_back("properties", JsonValue::object({{name, opposite}}));
      choices.push_back(std::move(choice));
    }
  } else if (key == "items" && !value.is_array() && schema.find("prefixItems") == nullptr) {
    const JsonValue& opposite = negation(value);
    if (!opposite.is_boolean() || opposite.boolean) choices.push_back(of_type("array", "contains", opposite));
  } else if (key == "anyOf" || key == "allOf") {
    if (!value.is_array()) wrong(schema, key, "expected an array of schemas");
    JsonValue all = JsonValue::array({});
    for (const JsonValue& part : value.items) all.items.push_back(negation(part));
    if (key == "allOf") {
      for (JsonValue& part : all.items) choices.push_back(std::move(part));
    } else {
      choices.push_back(JsonValue::object({{"allOf", std::move(all)}}));
    }
  } else if (key == "not") {
    choices.push_back(value);
  } else if (key == "additionalProperties" || key == "additionalItems") {
    const bool says_nothing = value.is_boolean() ? value.boolean : value.members.empty();
    if (!says_nothing) unsupported(schema, key, "its negation is not supported");
  } else if (key == "uniqueItems") {
    if (value.is_boolean() && value.boolean) unsupported(schema, key, "its negation is not supported");
  } else if (key == "format") {
    if (!value.is_string()) return;
    choices.push_back(of_type("string", "$not-format", value));
  } else {
    constexpr std::string_view kRefused[] = {"oneOf",
                                             "if",
                                             "patternProperties",
                                             "propertyNames",
                                             "items",
                                             "prefixItems",
                                             "contains",
                                             "dependencies",
                                             "dependentRequired",
                                             "dependentSchemas",
                                             "unevaluatedProperties",
                                             "unevaluatedItems",
                                             "$dynamicRef",
                                             "$recursiveRef",
                                             "$not-enum",
                                             "$not-pattern",
                                             "$not-multipleOf",
                                             "$not-format"};
    if (std::ranges::find(kRefused, key) != std::end(kRefused))
      unsupported(schema, key, "its negation is not supported");
  }
}

}  // namespace sluice::grammar
