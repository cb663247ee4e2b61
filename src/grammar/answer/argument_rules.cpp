#include "grammar/answer/argument_rules.h"

#include <algorithm>

#include "base/error.h"
#include "base/quote.h"
#include "grammar/regex/char_set.h"
#include "grammar/regex/pattern.h"
#include "grammar/schema/compiler.h"
#include "grammar/schema/formats.h"

namespace sluice::grammar::answer {
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

bool all_members_in(const json::Value& schema, std::span<const std::string_view> keywords) {
  return std::ranges::all_of(schema.members, [&](const auto& member) {
    return says_nothing(member.first) || std::ranges::find(keywords, member.first) != keywords.end();
  });
}

std::vector<std::string> strings_of(const json::Value& schema) {
  std::vector<std::string> texts;
  if (const json::Value* values = schema.find("enum"))
    for (const json::Value& value : values->items) texts.push_back(value.string);
  if (const json::Value* value = schema.find("const")) texts.push_back(value->string);
  return texts;
}

bool is_required(const json::Value& schema, std::string_view name) {
  const json::Value* required = schema.find("required");
  return required != nullptr && std::ranges::any_of(required->items, [&](const json::Value& one) {
           return one.is_string() && one.string == name;
         });
}

}  // namespace

bool is_plain_string(const json::Value& schema) {
  constexpr std::string_view kOfText[] = {"type", "pattern", "minLength", "maxLength", "format"};
  constexpr std::string_view kOfValues[] = {"type", "enum", "const"};
  if (!schema.is_object()) return false;
  const json::Value* type = schema.find("type");
  if (type != nullptr && !(type->is_string() && type->string == "string")) return false;
  if (type != nullptr && all_members_in(schema, kOfText)) return true;
  const json::Value *values = schema.find("enum"), *value = schema.find("const");
  if ((values == nullptr) == (value == nullptr) || !all_members_in(schema, kOfValues)) return false;
  if (value != nullptr) return value->is_string();
  return values->is_array() && std::ranges::all_of(values->items, &json::Value::is_string);
}

json::Value parameters_schema(const AnswerTool& tool, std::size_t max_bytes) {
  json::Value schema =
      tool.parameters.empty() ? json::Value::object({}) : json::Value::parse(tool.parameters, max_bytes);
  if (!schema.is_object())
    fail(ErrorKind::input, "the parameters of tool {} are not a JSON schema of an object", quote(tool.name));
  const json::Value* type = schema.find("type");
  if (type == nullptr) {
    schema.members.emplace_back("type", json::Value::of(std::string("object")));
  } else if (!type->is_string() || type->string != "object") {
    fail(ErrorKind::input, "the parameters of tool {} are of a type other than 'object'", quote(tool.name));
  }
  return schema;
}

ArgumentRules::ArgumentRules(const AnswerTool& tool, Rules& rules, regex::Lexer& lexer, std::size_t max_bytes)
    : tool_(tool),
      schema_(parameters_schema(tool, max_bytes)),
      rules_(rules),
      lexer_(lexer),
      arena_(lexer.arena()) {}

RuleId ArgumentRules::schema_rule(json::Value schema) {
  return schema::Compiler(std::move(schema), JsonWhitespace::readable, rules_, lexer_).compile();
}

RuleId ArgumentRules::as_json() {
  try {
    return schema_rule(schema_);
  } catch (const Error& error) {
    if (tool_.strict || error.kind() == ErrorKind::resource)
      fail(error.kind(), "tool {}: {}", quote(tool_.name), error.what());
  }
  return schema_rule(json::Value::object({{"type", json::Value::of(std::string("object"))}}));
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
  const json::Value* properties = schema_.find("properties");
  if (properties != nullptr && !properties->is_object())
    fail(ErrorKind::input, "schema: /properties: expected an object");
  check_required(properties);
  if (properties == nullptr || properties->members.empty()) {
    const json::Value* others = schema_.find("additionalProperties");
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
void ArgumentRules::check_required(const json::Value* properties) const {
  const json::Value* required = schema_.find("required");
  if (required == nullptr) return;
  if (!required->is_array()) fail(ErrorKind::input, "schema: /required: expected an array of names");
  for (const json::Value& name : required->items) {
    if (!name.is_string()) fail(ErrorKind::input, "schema: /required: expected an array of names");
    if (properties == nullptr || properties->find(name.string) == nullptr)
      fail(ErrorKind::unsupported,
           "schema: /required: {} is none of the properties, which is not supported where each parameter has "
           "its "
           "own tag",
           quote(name.string));
  }
}

void ArgumentRules::add_parameter(NodeId from, const std::string& name, const json::Value& schema, NodeId to,
                                  const FreeText& text) {
  if (name.empty() || name.find_first_of("<>\n") != std::string::npos)
    fail(ErrorKind::unsupported, "schema: /properties: the name {} does not fit into a tag", quote(name));
  const RuleId rule = rules_.node(from).rule;
  const NodeId value = rules_.add_node(rule);
  rules_.add_lexeme(from, arena_.literal("<parameter=" + name + ">\n"), value);
  const regex::Id end = arena_.literal("\n" + std::string(kParameterEnd) + "\n");
  if (is_plain_string(schema)) {
    rules_.add_lexeme(value, arena_.concat(raw_string(schema, text), end), to);
    return;
  }
  const NodeId written = rules_.add_node(rule);
  rules_.add_call(value, schema_rule(with_definitions(schema)), written);
  rules_.add_lexeme(written, end, to);
}

regex::Id ArgumentRules::raw_string(const json::Value& schema, const FreeText& text) {
  std::vector<regex::Id> conditions = {text.without(kParameterMarkers)};
  if (schema.find("enum") != nullptr || schema.find("const") != nullptr)
    conditions.push_back(arena_.literals(strings_of(schema)));
  const auto text_of = [&](std::string_view keyword) -> const json::Value* {
    const json::Value* value = schema.find(keyword);
    if (value != nullptr && !value->is_string())
      fail(ErrorKind::input, "schema: {}: expected a string", keyword);
    return value;
  };
  if (const json::Value* pattern = text_of("pattern"))
    conditions.push_back(regex::search_regex(arena_, regex::parse_pattern(pattern->string, {.ecma = true}),
                                             regex::TextForm::utf8));
  if (const json::Value* format = text_of("format")) {
    const schema::Format known = schema::find_format(format->string);
    if (known.kind == schema::Format::Kind::unsupported)
      fail(ErrorKind::unsupported, "schema: format {} is not supported", quote(format->string));
    if (known.kind == schema::Format::Kind::pattern)
      conditions.push_back(regex::match_regex(arena_, regex::parse_pattern(known.pattern, {.ecma = true}),
                                              regex::TextForm::utf8));
  }
  const auto bound = [&](std::string_view keyword, std::uint32_t otherwise) {
    constexpr std::int64_t kMost = 1'000'000'000;
    const json::Value* value = schema.find(keyword);
    if (value == nullptr) return otherwise;
    const std::int64_t count = value->is_number() ? value->number.as_count(kMost) : -1;
    if (count < 0) fail(ErrorKind::input, "schema: {}: expected a whole number from 0 to {}", keyword, kMost);
    return static_cast<std::uint32_t>(count);
  };
  const std::uint32_t least = bound("minLength", 0), most = bound("maxLength", regex::kNoLimit);
  if (least > 0 || most != regex::kNoLimit)
    conditions.push_back(arena_.repeat(regex::utf8_regex(arena_, regex::CharSet::all()), least, most));
  return arena_.all_of(std::move(conditions));
}

// For tools whose parameters are not described.
RuleId ArgumentRules::any_xml_rule(const FreeText& text) {
  const RuleId rule = rules_.add_rule("parameters of " + tool_.name);
  const NodeId at = rules_.start(rule), value = rules_.add_node(rule);
  const regex::Id name =
      regex::match_regex(arena_, regex::parse_pattern("[A-Za-z0-9_.-]{1,64}", {}), regex::TextForm::utf8);
  rules_.add_lexeme(at, arena_.sequence({arena_.literal("<parameter="), name, arena_.literal(">\n")}), value);
  const regex::Id end = arena_.literal("\n" + std::string(kParameterEnd) + "\n");
  rules_.add_lexeme(value, arena_.concat(text.without(kParameterMarkers), end), at);
  rules_.set_final(at);
  return rule;
}

json::Value ArgumentRules::with_definitions(const json::Value& schema) const {
  std::vector<std::pair<std::string, json::Value>> members;
  for (const char* key : {"$schema", "$defs", "definitions"})
    if (const json::Value* value = schema_.find(key)) members.emplace_back(key, *value);
  members.emplace_back("allOf", json::Value::array({schema}));
  return json::Value::object(std::move(members));
}

}  // namespace sluice::grammar::answer

namespace sluice {

AnswerParser::ParameterTypes parameter_types(std::span<const AnswerTool> tools) {
  AnswerParser::ParameterTypes types;
  for (const AnswerTool& tool : tools) {
    const grammar::json::Value schema =
        grammar::answer::parameters_schema(tool, GrammarLimits{}.source_bytes);
    const grammar::json::Value* properties = schema.find("properties");
    if (properties == nullptr) continue;
    for (const auto& [name, property] : properties->members) {
      const grammar::json::Value* type = property.find("type");
      std::string word = type != nullptr && type->is_string() ? type->string : "any";
      if (word == "string" && !grammar::answer::is_plain_string(property)) word = "any";
      if (grammar::answer::is_plain_string(property)) word = "string";
      types[tool.name].emplace(name, std::move(word));
    }
  }
  return types;
}

}  // namespace sluice
