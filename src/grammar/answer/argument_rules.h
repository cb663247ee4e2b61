// The arguments of a tool's calls as rules: a JSON object, or one tag per parameter.
#pragma once

#include <string_view>

#include "grammar/answer/free_text.h"
#include "grammar/json/value.h"
#include "grammar/rules.h"
#include "sluice/answer.h"

namespace sluice::grammar::answer {

class ArgumentRules {
 public:
  // Throws if the parameters are not the schema of an object.
  ArgumentRules(const AnswerTool& tool, Rules& rules, regex::Lexer& lexer, std::size_t max_bytes);

  RuleId as_json();
  // <parameter=name>, a line break, the value, a line break, </parameter>. Strings are written as they are,
  // other values as JSON.
  RuleId as_xml(const FreeText& text);

 private:
  RuleId schema_rule(json::Value schema);
  RuleId xml_rule(const FreeText& text);
  RuleId any_xml_rule(const FreeText& text);
  void check_required(const json::Value* properties) const;
  void add_parameter(NodeId from, const std::string& name, const json::Value& schema, NodeId to,
                     const FreeText& text);
  regex::Id raw_string(const json::Value& schema, const FreeText& text);
  // The schema of a parameter with the definitions it may refer to.
  json::Value with_definitions(const json::Value& schema) const;

  const AnswerTool& tool_;
  json::Value schema_;
  Rules& rules_;
  regex::Lexer& lexer_;
  regex::Arena& arena_;
};

// Whether a parameter with that schema is a string that tags can hold unescaped.
bool is_plain_string(const json::Value& schema);
// The schema of a tool's arguments, which must be that of an object.
json::Value parameters_schema(const AnswerTool& tool, std::size_t max_bytes);

}  // namespace sluice::grammar::answer
