// From JSON Schema to rules. A value is held to a list of schemas that must all hold; a list becomes a rule
// once, so recursion ends. Alternatives (anyOf, oneOf, if) are multiplied out, and what is left is merged by
// type.
#pragma once

#include <chrono>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "grammar/regex/lexer.h"
#include "grammar/regex/pattern.h"
#include "grammar/rules.h"
#include "grammar/schema/constraints.h"
#include "grammar/schema/document.h"
#include "sluice/grammar.h"

namespace sluice::grammar {

// A schema, or one part of what it says.
struct Demand {
  enum class Part : std::uint8_t { keywords, any_of, one_of, conditional, never };
  const JsonValue* schema;
  Part part;

  friend auto operator<=>(const Demand&, const Demand&) = default;
};
using Demands = std::vector<Demand>;

// The blanks and brackets of JSON.
struct JsonTokens {
  RegexId open_object, close_object, close_empty_object, open_array, close_array, close_empty_array, comma,
      colon;
};
JsonTokens json_tokens(RegexArena& arena, JsonWhitespace whitespace);

class SchemaCompiler {
 public:
  SchemaCompiler(JsonValue schema, JsonWhitespace whitespace, Rules& rules, Lexer& lexer,
                 std::chrono::milliseconds time_limit);

  RuleId compile();

 private:
  friend class ObjectRule;
  friend class ArrayRule;

  // A value as text: what needs no rule, and the rule for the rest.
  struct Value {
    RegexId strings = RegexArena::kNothing;
    RegexId others = RegexArena::kNothing;
    bool structured = false;
    std::optional<RuleId> rule;
  };

  // demands.cpp: what must hold
  void demand(Demands& demands, const JsonValue& schema);
  void demand_keyword(Demands& demands, const JsonValue& schema, const std::string& key,
                      const JsonValue& value);
  void demand_dependencies(Demands& demands, const JsonValue& schema, const std::string& key,
                           const JsonValue& value);
  void demand_reference(Demands& demands, const JsonValue& schema, const JsonValue& reference);
  Demands demands_of(const JsonValue& schema);
  // The ways to fulfil all demands, each without alternatives. A rough answer may hold more than that, but is
  // found without negations.
  std::vector<Demands> alternatives(const Demands& demands, bool rough = false);
  std::vector<Demands> branches(const Demand& demand, bool rough);
  std::vector<Demands> exclusive_branches(const JsonValue& schema, const JsonValue& one_of);
  unsigned types_of(const Demands& demands);
  unsigned types_of(const JsonValue& schema);
  bool provably_empty(const Demands& demands, int depth);
  bool provably_empty(const Constraints& constraints, int depth);

  // negation.cpp
  const JsonValue& negation(const JsonValue& schema);
  void negate_keyword(const JsonValue& schema, const std::string& key, const JsonValue& value,
                      std::vector<JsonValue>& choices);
  JsonValue make_negation(const JsonValue& schema);

  // merge.cpp: what the keywords say together
  Constraints merge(const Demands& demands);
  void merge_keyword(Constraints& into, const JsonValue& schema, const std::string& key,
                     const JsonValue& value);
  void merge_number(Constraints& into, const JsonValue& schema, const std::string& key,
                    const JsonValue& value);
  unsigned type_bits(const JsonValue& schema, const JsonValue& type) const;
  bool admits(const Demands& demands, const JsonValue& value);
  bool admits(const Constraints& constraints, const JsonValue& value);
  bool admits_object(const Constraints& constraints, const JsonValue& value);
  bool admits_array(const Constraints& constraints, const JsonValue& value);

  // objects and arrays
  std::vector<std::string> property_names(const Constraints& constraints) const;
  std::vector<std::string> required_names(const Constraints& constraints) const;
  Demands property_demands(const Constraints& constraints, const std::string& name);
  RegexId name_regex(const Constraints& constraints);
  Demands item_demands(const Constraints& constraints, std::size_t index);
  std::size_t prefix_items(const Constraints& constraints) const;

  // values.cpp: text
  const Value& value(const Demands& demands);
  void add_value(NodeId from, const Demands& demands, NodeId to);
  void write_rule(RuleId rule, const Demands& demands);
  RegexId string_content(const Constraints& constraints);
  RegexId number_text(const Constraints& constraints);
  RegexId value_text(const JsonValue& value);
  RegexId values_text(const Constraints& constraints, bool strings);
  RegexId pattern_regex(const JsonValue& schema, std::string_view keyword, const std::string& pattern);
  const Pattern& parsed_pattern(const JsonValue& schema, std::string_view keyword,
                                const std::string& pattern);

  [[noreturn]] void wrong(const JsonValue& schema, std::string_view keyword, std::string_view what) const;
  [[noreturn]] void unsupported(const JsonValue& schema, std::string_view keyword,
                                std::string_view what) const;
  void check_time() const;

  SchemaDocument document_;
  Rules& rules_;
  Lexer& lexer_;
  RegexArena& arena_;
  JsonTokens tokens_;
  RegexId any_char_;
  std::chrono::steady_clock::time_point deadline_;
  std::map<Demands, Value> values_;
  std::vector<std::pair<RuleId, Demands>> unwritten_;
  std::map<const JsonValue*, Demands> demands_of_;
  std::map<const JsonValue*, unsigned> types_of_;
  std::map<const JsonValue*, std::vector<Demands>> exclusive_;
  std::map<const JsonValue*, const JsonValue*> negations_, dependencies_;
  std::map<std::string, Pattern> patterns_;
  std::map<std::string, RegexId> pattern_regexes_;
  int depth_ = 0;
};

}  // namespace sluice::grammar
