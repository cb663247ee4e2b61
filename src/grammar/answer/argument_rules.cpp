#include "grammar/answer/argument_rules.h"

#include <algorithm>

#include "base/error.h"
#include "base/quote.h"
#include "grammar/regex/char_set.h"
#include "grammar/regex/pattern.h"
#include "grammar/schema/compiler.h"
#include "grammar/schema/formats.h"

namespace sluice::grammar {
namespace {

constexpr std::string_view kParameterEnd = "</parameter>";
// A value that contains one of these would end early when parsed.
constexpr std::string_view kParameterMarkers[] = {kParameterEnd, "</tool_call>", "\n<parameter="};

bool says_nothing(std::string_view keyword) {
  constexpr std::string_view kAnnotations[] = {
      "title",      "description", "default",          "examples",        "$comment",
      "deprecated", "readOnly",    "writeOnly",        "$schema",         "$id",
      "$defs",      "definitions", "contentMediaType", "contentEncoding", "strict"};
  return std::ranges::find(kAnnotations, keyword) != std::end(kAnnotations);
}

bool all_members_in(const JsonValue& schema, std::span<const std::string_view> keywords) {
  return std::ranges::all_of(schema.members, [&](const auto& member) {
    return says_nothing(member.first) || std::ranges::find(keywords, member.first) != keywords.end();
  });
}

std::vector<std::string> strings_of(const JsonValue& schema) {
  std::vector<std::string> texts;
  if (const JsonValue* values = schema.find("enum"))
    for (const JsonValue& value : values->items) texts.push_back(value.string);
  if (const JsonValue* value = schema.find("const")) texts.push_back(value->string);
  return texts;
}

bool is_required(const JsonValue& schema, std::string_view name) {
  const JsonValue* required = schema.find("required");
  return required != nullptr && std::ranges::any_of(required->items, [&](const JsonValue& one) {
           return one.is_string() && one.string == name;
         });
}

}  // namespace

bool is_plain_string(const JsonValue& schema) {
  constexpr std::string_view kOfText[] = {"type", "pattern", "minLength", "maxLength", "format"};
  constexpr std::string_view kOfValues[] = {"type", "enum", "const"};
  if (!schema.is_object()) return false;
  const JsonValue* type = schema.find("type");
  if (type != nullptr && !(type->is_string() && type->string == "string")) return false;
  if (type != nullptr && all_members_in(schema, kOfText)) return true;
  const JsonValue *values = schema.find("enum"), *value = schema.find("const");
  if ((values == nullptr) == (value == nullptr) || !all_members_in(schema, kOfValues)) return false;
  if (value != nullptr) return value->is_string();
  return values->is_array() && std::ranges::all_of(values->items, &JsonValue::is_string);
}

JsonValue parameters_schema(const AnswerTool& tool, std::size_t max_bytes) {
  JsonValue schema =
      tool.parameters.empty() ? JsonValue::object({}) : JsonValue::parse(tool.parameters, max_bytes);
  if (!schema.is_object())
    fail(ErrorKind::input, "the parameters of tool {} are not a JSON schema of an object", quote(tool.name));
  const JsonValue* type = schema.find("type");
  if (type == nullptr) {
    schema.members.emplace_back("type", JsonValue::of(std::string("object")));
  } else if (!type->is_string() || type->string != "object") {
    fail(ErrorKind::input, "the parameters of tool {} are of a type other than 'object'", quote(tool.name));
  }
  return schema;
}

ArgumentRules::ArgumentRules(const AnswerTool& tool, Rules& rules, Lexer& lexer, std::size_t max_bytes)
    : tool_(tool),
      schema_(parameters_schema(tool, max_bytes)),
      rules_(rules),
      lexer_(lexer),
      arena_(lexer.arena()) {}

RuleId ArgumentRules::schema_rule(JsonValue schema) {
  return SchemaCompiler(std::move(schema), JsonWhitespace::readable, rules_, lexer_).compile();
}

RuleId ArgumentRules::as_json() {
  try {
    return schema_rule(schema_);
  } catch (const Error& error) {
    if (tool_.strict || error.kind() == ErrorKind::resource)
      fail(error.kind(), "tool {}: {}", quote(tool_.name), error.what());
  }
  return schema_rule(JsonValue::object({{"type", JsonValue::of(std::string("object"))}}));
}

RuleId ArgumentRules::as_xml(const FreeText& text) {
  try {
    return xml_rule(text);
  } catch (const Error& error) {
    if (tool_.strict || error.kind() == ErrorKind::resource)
      fail(error.kind(), "tool {}: {}", quote(tool_.name), error.what());
  }
  return any_xml_rule(text);
}

// Parameters, in the order of the schema.
RuleId ArgumentRules::xml_rule(const FreeText& text) {
  constexpr std::string_view kSupported[] = {"type", "properties", "required", "additionalProperties"};
  for (const auto& [key, unused] : schema_.members)
    if (!says_nothing(key) && std::ranges::find(kSupported, key) == std::end(kSupported))
      fail(ErrorKind::unsupported, "schema: /{}: not supported where each parameter has its own tag", key);
  const JsonValue* properties = schema_.find("properties");
  if (properties != nullptr && !properties->is_object())
    fail(ErrorKind::input, "schema: /properties: expected an object");
  check_required(properties);
  if (properties == nullptr || properties->members.empty()) {
    const JsonValue* others = schema_.find("additionalProperties");
    const bool none =
        properties != nullptr || (others != nullptr && others->is_boolean() && !others->boolean);
    if (!none) return any_xml_rule(text);
  }
  const RuleId rule = rules_.add_rule("parameters of " + tool_.name);
  NodeId at = rules_.start(rule);
  if (properties != nullptr) {
    for (const auto& [name, schema] : properties->members) {
      const NodeId next = rules_.add_node(rule);
      add_parameter(at, name, schema, next, text);
      if (!is_required(schema_, name)) rules_.add_skip(at, next);
      at = next;
    }
  }
  rules_.set_final(at);
  return rule;
}

// Checks that every required parameter has a tag of its own.
void ArgumentRules::check_required(const JsonValue* properties) const {
  const JsonValue* required = schema_.find("required");
  if (required == nullptr) return;
  if (!required->is_array()) fail(ErrorKind::input, "schema: /required: expected an array of names");
  for (const JsonValue& name : required->items) {
    if (!name.is_string()) fail(ErrorKind::input, "schema: /required: expected an array of names");
    if (properties == nullptr || properties->find(name.string) == nullptr)
      fail(ErrorKind::unsupported,
           "schema: /required: {} is none of the properties, which is not supported where each parameter has "
           "its "
           "own tag",
           quote(name.string));
  }
}

void ArgumentRules::add_parameter(NodeId from, const std::string& name, const JsonValue& schema, NodeId to,
                                  const FreeText& text) {
  if (name.empty() || name.find_first_of("<>\n") != std::string::npos)
    fail(ErrorKind::unsupported, "schema: /properties: the name {} does not fit into a tag", quote(name));
  const RuleId rule = rules_.node(from).rule;
  const NodeId value = rules_.add_node(rule);
  rules_.add_lexeme(from, arena_.literal("<parameter=" + name + ">\n"), value);
  const RegexId end = arena_.literal("\n" + std::string(kParameterEnd) + "\n");
  if (is_plain_string(schema)) {
    rules_.add_lexeme(value, arena_.concat(raw_string(schema, text), end), to);
    return;
  }
  const NodeId written = rules_.add_node(rule);
  rules_.add_call(value, schema_rule(with_definitions(schema)), written);
  rules_.add_lexeme(written, end, to);
}

RegexId ArgumentRules::raw_string(const JsonValue& schema, const FreeText& text) {
  std::vector<RegexId> conditions = {text.without(kParameterMarkers)};
  if (schema.find("enum") != nullptr || schema.find("const") != nullptr)
    conditions.push_back(arena_.literals(strings_of(schema)));
  const auto text_of = [&](std::string_view keyword) -> const JsonValue* {
    const JsonValue* value = schema.find(keyword);
    if (value != nullptr && !value->is_string())
      fail(ErrorKind::input, "schema: {}: expected a string", keyword);
    return value;
  };
  if (const JsonValue* pattern = text_of("pattern"))
    conditions.push_back(
        search_regex(arena_, parse_pattern(pattern->string, {.ecma = true}), TextForm::utf8));
  if (const JsonValue* format = text_of("format")) {
    const Format known = find_format(format->string);
    if (known.kind == Format::Kind::unsupported)
      fail(ErrorKind::unsupported, "schema: format {} is not supported", quote(format->string));
    if (known.kind == Format::Kind::pattern)
      conditions.push_back(match_regex(arena_, parse_pattern(known.pattern, {.ecma = true}), TextForm::utf8));
  }
  const auto bound = [&](std::string_view keyword, std::uint32_t otherwise) {
    constexpr std::int64_t kMost = 1'000'000'000;
    const JsonValue* value = schema.find(keyword);
    if (value == nullptr) return otherwise;
    const std::int64_t count = value->is_number() ? value->number.as_count(kMost) : -1;
    if (count < 0) fail(ErrorKind::input, "schema: {}: expected a whole number from 0 to {}", keyword, kMost);
    return static_cast<std::uint32_t>(count);
  };
  const std::uint32_t least = bound("minLength", 0), most = bound("maxLength", kNoLimit);
  if (least > 0 || most != kNoLimit)
    conditions.push_back(arena_.repeat(utf8_regex(arena_, CharSet::all()), least, most));
  return arena_.all_of(std::move(conditions));
}

// For tools whose parameters are not described.
RuleId ArgumentRules::any_xml_rule(const FreeText& text) {
  const RuleId rule = rules_.add_rule("parameters of " + tool_.name);
  const NodeId at = rules_.start(rule), value = rules_.add_node(rule);
  const RegexId name = match_regex(arena_, parse_pattern("[A-Za-z0-9_.-]{1,64}", {}), TextForm::utf8);
  rules_.add_lexeme(at, arena_.sequence({arena_.literal("<parameter="), name, arena_.literal(">\n")}), value);
  const RegexId end = arena_.literal("\n" + std::string(kParameterEnd) + "\n");
  rules_.add_lexeme(value, arena_.concat(text.without(kParameterMarkers), end), at);
  rules_.set_final(at);
  return rule;
}

JsonValue ArgumentRules::with_definitions(const JsonValue& schema) const {
  std::vector<std::pair<std::string, JsonValue>> members;
  for (const char* key : {"$schema", "$defs", "definitions"})
    if (const JsonValue* value = schema_.find(key)) members.emplace_back(key, *value);
  members.emplace_back("allOf", JsonValue::array({schema}));
  return JsonValue::object(std::move(members));
}

}  // namespace sluice::grammar

namespace sluice {

AnswerParser::ParameterTypes parameter_types(std::span<const AnswerTool> tools) {
  AnswerParser::ParameterTypes types;
  for (const AnswerTool& tool : tools) {
    const grammar::JsonValue schema = grammar::parameters_schema(tool, GrammarLimits{}.source_bytes);
    const grammar::JsonValue* properties = schema.find("properties");
    if (properties == nullptr) continue;
    for (const auto& [name, property] : properties->members) {
      const grammar::JsonValue* type = property.find("type");
      std::string word = type != nullptr && type->is_string() ? type->string : "any";
      if (word == "string" && !grammar::is_plain_string(property)) word = "any";
      if (grammar::is_plain_string(property)) word = "string";
      types[tool.name].emplace(name, std::move(word));
    }
  }
  return types;
}

}  // namespace sluice
