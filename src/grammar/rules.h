// The common form that all grammars are compiled to: rules whose edges read a lexeme (a regular expression
// over bytes) or call a rule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/regex/arena.h"
#include "grammar/regex/lexer.h"

namespace sluice::grammar {

using NodeId = std::uint32_t;
using RuleId = std::uint32_t;

struct Edge {
  enum class Kind : std::uint8_t { lexeme, call, skip };
  Kind kind;
  std::uint32_t what;  // a Id or a RuleId
  NodeId target;
};

struct Node {
  RuleId rule = 0;
  bool final = false;
  std::vector<Edge> edges;
};

struct Rule {
  std::string name;
  NodeId start = 0;
  bool nullable = false;
  std::uint32_t rank = 0;  // calls at the start of a rule only lead to higher ranks
};

class Rules {
 public:
  explicit Rules(std::size_t max_nodes = 1'000'000) : max_nodes_(max_nodes) {}

  RuleId add_rule(std::string name);
  NodeId add_node(RuleId rule);
  NodeId start(RuleId rule) const { return rules_[rule].start; }
  void set_final(NodeId node) { nodes_[node].final = true; }
  void add_lexeme(NodeId from, regex::Id regex, NodeId to);
  void add_call(NodeId from, RuleId rule, NodeId to) { add_edge(from, {Edge::Kind::call, rule, to}); }
  void add_skip(NodeId from, NodeId to) { add_edge(from, {Edge::Kind::skip, 0, to}); }

  // Drops what can never be finished, then checks that no rule is left-recursive. Returns false if nothing is
  // left of the root.
  bool finish(RuleId root, regex::Lexer& lexer);

  RuleId root() const { return root_; }
  const Rule& rule(RuleId id) const { return rules_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  std::size_t rule_count() const { return rules_.size(); }
  std::size_t node_count() const { return nodes_.size(); }

 private:
  void add_edge(NodeId from, Edge edge);
  void drop_unfinishable(regex::Lexer& lexer);
  void find_nullable(const regex::Arena& arena);
  void rank_rules();
  void left_calls(RuleId rule, std::vector<bool>& seen, std::vector<RuleId>& calls) const;

  std::size_t max_nodes_;
  std::size_t edges_ = 0;
  RuleId root_ = 0;
  std::vector<Rule> rules_;
  std::vector<Node> nodes_;
};

}  // namespace sluice::grammar
