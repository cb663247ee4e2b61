// Compiles JSON Schema to rules. A value must satisfy a list of schemas; each distinct list becomes one rule,
// so recursion terminates. Alternatives (anyOf, oneOf, if) are expanded to a disjunction, and each of its
// terms is merged by type.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/regex/lexer.h"
#include "grammar/regex/pattern.h"
#include "grammar/rules.h"
#include "grammar/schema/constraints.h"
#include "grammar/schema/document.h"
#include "sluice/grammar.h"

namespace sluice::grammar::schema {

// A schema that must hold, or one part of it.
struct Demand {
  enum class Part : std::uint8_t { keywords, any_of, one_of, conditional, never };
  const json::Value* schema;
  Part part;
  const Scope* scope;

  friend auto operator<=>(const Demand&, const Demand&) = default;
};
using Demands = std::vector<Demand>;

// The punctuation of JSON, with the allowed whitespace.
struct JsonTokens {
  regex::Id open_object, close_object, close_empty_object, open_array, close_array, close_empty_array, comma,
      colon;
};
JsonTokens json_tokens(regex::Arena& arena, JsonWhitespace whitespace);

class Compiler {
 public:
  // The lexer's arena limits the time.
  Compiler(json::Value schema, JsonWhitespace whitespace, Rules& rules, regex::Lexer& lexer);

  RuleId compile();

 private:
  friend class ObjectRule;
  friend class ArrayRule;

  // The text of a value: expressions for what needs no rule, and a rule for the rest.
  struct Value {
    regex::Id strings = regex::Arena::kNothing;
    regex::Id others = regex::Arena::kNothing;
    bool structured = false;
    std::optional<RuleId> rule;
  };

  // How many items must match one schema.
  struct Contains {
    Applied by;
    const json::Value* schema;
    std::uint32_t min = 1, max = regex::kNoLimit;
  };
  // A property that must exist, with the schemas of its name and its value. Only negations require it.
  struct SomeProperty {
    Applied by;
    regex::Id names;
    const json::Value* value;
  };
  static constexpr std::uint32_t kAllContained = ~std::uint32_t{0};

  // demands.cpp: collecting what must hold
  void demand(Demands& demands, const json::Value& schema, const Scope* scope);
  void demand_keyword(Demands& demands, const Applied& at, const std::string& key, const json::Value& value);
  void demand_dependencies(Demands& demands, const Applied& at, const std::string& key,
                           const json::Value& value);
  void demand_reference(Demands& demands, const Applied& at, std::string_view key,
                        const json::Value& reference);
  // Adds what a keyword says of a part of the value.
  void demand_part(Demands& demands, const Applied& at, const json::Value& schema) {
    demand(demands, schema, scopes_.inner(at.scope));
  }
  Demands demands_of(const json::Value& schema, const Scope* scope);
  // The ways to satisfy all demands, each without alternatives. A rough answer may allow more, but needs no
  // negations.
  std::vector<Demands> alternatives(const Demands& demands, bool rough = false);
  std::vector<Demands> branches(const Demand& demand, bool rough);
  std::vector<Demands> any_branches(const Applied& at, const json::Value& any_of);
  std::vector<Demands> exclusive_branches(const Applied& at, const json::Value& one_of);
  unsigned types_of(const Demands& demands);
  unsigned types_of(const json::Value& schema);
  bool provably_empty(const Demands& demands, int depth);
  bool provably_empty(const Constraints& constraints, int depth);

  // negation.cpp
  const json::Value& negation(const json::Value& schema);
  // The ways to violate a keyword, as choices. The functions below return whether they handle the keyword.
  using Choices = std::vector<json::Value>;
  void negate_keyword(const json::Value& schema, const std::string& key, const json::Value& value,
                      Choices& choices);
  bool negate_applicator(const json::Value& schema, const std::string& key, const json::Value& value,
                         Choices& choices);
  bool negate_value(const json::Value& schema, const std::string& key, const json::Value& value,
                    Choices& choices);
  bool negate_count(const json::Value& schema, const std::string& key, const json::Value& value,
                    Choices& choices);
  bool negate_object(const json::Value& schema, const std::string& key, const json::Value& value,
                     Choices& choices);
  bool negate_dependencies(const json::Value& schema, const std::string& key, const json::Value& value,
                           Choices& choices);
  bool negate_array(const json::Value& schema, const std::string& key, const json::Value& value,
                    Choices& choices);
  void negate_one_of(const json::Value& schema, const json::Value& one_of, Choices& choices);
  void negate_contains(const json::Value& schema, const json::Value& value, Choices& choices);
  static json::Value some_property(json::Value names, json::Value value);
  json::Value make_negation(const json::Value& schema);
  // Negations and dependencies copy parts of the schema; this limits their total size.
  void count_made(const json::Value& schema, std::size_t times = 1);

  // merge.cpp: combining keywords
  Constraints merge(const Demands& demands);
  void merge_keyword(Constraints& into, const json::Value& schema, const std::string& key,
                     const json::Value& value);
  void merge_number(Constraints& into, const json::Value& schema, const std::string& key,
                    const json::Value& value);
  unsigned type_bits(const json::Value& schema, const json::Value& type) const;
  bool admits(const Demands& demands, const json::Value& value);
  bool admits(const Constraints& constraints, const json::Value& value);
  bool admits_object(const Constraints& constraints, const json::Value& value);
  bool admits_array(const Constraints& constraints, const json::Value& value);

  // objects and arrays
  std::vector<std::string> property_names(const Constraints& constraints) const;
  std::vector<std::string> required_names(const Constraints& constraints) const;
  // A property of an object that may have very many.
  const json::Value* member(const json::Value& object, const std::string& name);
  Demands property_demands(const Constraints& constraints, const std::string& name);
  // Adds the demands on a property that is named by the marked schemas only.
  void demand_others(Demands& demands, const Constraints& constraints, const std::vector<bool>& named);
  regex::Id name_regex(const Constraints& constraints);
  regex::Id name_regex(const json::Value& schema, const Scope* scope);
  std::vector<SomeProperty> find_some(const Constraints& constraints);
  std::vector<Contains> find_contains(const Constraints& constraints);
  Contains read_contains(const Applied& at, const json::Value& schema) const;
  // Bit i of `contained` says whether the item matches the i-th `contains` schema.
  Demands item_demands(const Constraints& constraints, std::size_t index, std::uint32_t contained);
  void demand_unevaluated_items(Demands& demands, const Constraints& constraints, std::size_t index,
                                std::uint32_t contained);
  std::size_t prefix_items(const Constraints& constraints) const;

  // values.cpp: text
  const Value& value(const Demands& demands);
  void add_value(NodeId from, const Demands& demands, NodeId to);
  void write_rule(RuleId rule, const Demands& demands);
  regex::Id string_content(const Constraints& constraints);
  regex::Id number_text(const Constraints& constraints);
  regex::Id value_text(const json::Value& value);
  regex::Id values_text(const Constraints& constraints, bool strings);
  regex::Id pattern_regex(const json::Value& schema, std::string_view keyword, const std::string& pattern);
  const regex::Pattern& parsed_pattern(const json::Value& schema, std::string_view keyword,
                                       const std::string& pattern);

  [[noreturn]] void wrong(const json::Value& schema, std::string_view keyword, std::string_view what) const;
  [[noreturn]] void unsupported(const json::Value& schema, std::string_view keyword,
                                std::string_view what) const;
  // Names the first of the schemas that has the keyword.
  [[noreturn]] void unsupported(const Constraints& constraints, std::string_view keyword,
                                std::string_view what) const;
  [[noreturn]] void refuse_nesting(const json::Value& schema) const;
  void check_time() const { arena_.check_time(); }
  // For loops over products of lists.
  void count_steps(std::size_t steps) const { arena_.count_steps(steps); }
  void add_demand(Demands& demands, const Demand& demand) const;

  Document document_;
  Scopes scopes_;
  Rules& rules_;
  regex::Lexer& lexer_;
  regex::Arena& arena_;
  JsonTokens tokens_;
  regex::Id any_char_;
  std::map<Demands, Value> values_;
  std::vector<std::pair<RuleId, Demands>> unwritten_;
  std::map<std::pair<const json::Value*, const Scope*>, Demands> demands_of_;
  std::map<const json::Value*, unsigned> types_of_;
  std::map<std::pair<const json::Value*, const Scope*>, std::vector<Demands>> exclusive_;
  std::map<const json::Value*, const json::Value*> negations_, dependencies_;
  std::size_t made_values_ = 0;
  std::map<std::string, regex::Pattern> patterns_;
  std::map<std::string, regex::Id> pattern_regexes_;
  std::unordered_map<const json::Value*, std::unordered_map<std::string_view, const json::Value*>> members_;
  int depth_ = 0;
};

}  // namespace sluice::grammar::schema
