#include "grammar/rules.h"

#include <algorithm>

#include "base/error.h"
#include "base/quote.h"

namespace sluice::grammar {

RuleId Rules::add_rule(std::string name) {
  const auto id = static_cast<RuleId>(rules_.size());
  rules_.push_back({.name = std::move(name)});
  rules_[id].start = add_node(id);
  return id;
}

NodeId Rules::add_node(RuleId rule) {
  if (nodes_.size() >= max_nodes_)
    fail(ErrorKind::resource, "the grammar needs more than {} nodes", max_nodes_);
  nodes_.push_back({.rule = rule, .final = false, .edges = {}});
  return static_cast<NodeId>(nodes_.size() - 1);
}

void Rules::add_lexeme(NodeId from, RegexId regex, NodeId to) {
  if (regex == RegexArena::kNothing) return;
  if (regex == RegexArena::kEmpty) return add_skip(from, to);
  add_edge(from, {Edge::Kind::lexeme, regex, to});
}

// A node can be finished if it is final or one edge that can be passed leads to one that can; what is left
// over when nothing more is found goes.
void Rules::drop_unfinishable(Lexer& lexer) {
  std::vector<std::vector<NodeId>> waiting_for_node(nodes_.size()), waiting_for_rule(rules_.size());
  std::vector<bool> good(nodes_.size(), false);
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    std::erase_if(nodes_[id].edges, [&](const Edge& edge) {
      return edge.kind == Edge::Kind::lexeme && !lexer.alive(edge.what);
    });
    for (const Edge& edge : nodes_[id].edges) {
      waiting_for_node[edge.target].push_back(id);
      if (edge.kind == Edge::Kind::call) waiting_for_rule[edge.what].push_back(id);
    }
  }
  std::vector<NodeId> found;
  const auto consider = [&](NodeId id) {
    if (good[id]) return;
    good[id] = nodes_[id].final || std::ranges::any_of(nodes_[id].edges, [&](const Edge& edge) {
                 return good[edge.target] && (edge.kind != Edge::Kind::call || good[rules_[edge.what].start]);
               });
    if (good[id]) found.push_back(id);
  };
  for (NodeId id = 0; id < nodes_.size(); ++id) consider(id);
  while (!found.empty()) {
    const NodeId id = found.back();
    found.pop_back();
    for (const NodeId waiting : waiting_for_node[id]) consider(waiting);
    const RuleId rule = nodes_[id].rule;
    if (rules_[rule].start == id)
      for (const NodeId waiting : waiting_for_rule[rule]) consider(waiting);
  }
  for (Node& node : nodes_) {
    std::erase_if(node.edges, [&](const Edge& edge) {
      return !good[edge.target] || (edge.kind == Edge::Kind::call && !good[rules_[edge.what].start]);
    });
  }
}

// A rule is nullable if its end can be reached over skips and nullable calls and lexemes; those are then
// given a skip, so that a rule that is entered always reads something.
void Rules::find_nullable(const RegexArena& arena) {
  std::vector<bool> reaches_end(nodes_.size());
  for (NodeId id = 0; id < nodes_.size(); ++id) reaches_end[id] = nodes_[id].final;
  const auto passes = [&](const Edge& edge) {
    return edge.kind == Edge::Kind::skip || (edge.kind == Edge::Kind::lexeme && arena.nullable(edge.what)) ||
           (edge.kind == Edge::Kind::call && rules_[edge.what].nullable);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (NodeId id = static_cast<NodeId>(nodes_.size()); id-- > 0;) {
      if (reaches_end[id]) continue;
      for (const Edge& edge : nodes_[id].edges) {
        if (!reaches_end[edge.target] || !passes(edge)) continue;
        reaches_end[id] = changed = true;
        break;
      }
    }
    for (Rule& rule : rules_) {
      if (rule.nullable || !reaches_end[rule.start]) continue;
      rule.nullable = changed = true;
    }
  }
  for (Node& node : nodes_) {
    const std::size_t count = node.edges.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Edge edge = node.edges[i];
      if (edge.kind != Edge::Kind::skip && passes(edge))
        node.edges.push_back({Edge::Kind::skip, 0, edge.target});
    }
  }
}

void Rules::left_calls(RuleId rule, std::vector<RuleId>& calls) const {
  std::vector<NodeId> seen = {rules_[rule].start};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (const Edge& edge : nodes_[seen[i]].edges) {
      if (edge.kind == Edge::Kind::call) calls.push_back(edge.what);
      if (edge.kind == Edge::Kind::skip && std::ranges::find(seen, edge.target) == seen.end())
        seen.push_back(edge.target);
    }
  }
  std::ranges::sort(calls);
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
}

// Ranks fall from the callees to the callers, in the order a depth-first search leaves them.
void Rules::rank_rules() {
  enum : std::uint8_t { kNew, kOpen, kDone };
  std::vector<std::uint8_t> state(rules_.size(), kNew);
  struct Visit {
    RuleId rule;
    std::vector<RuleId> calls;
  };
  auto rank = static_cast<std::uint32_t>(rules_.size());
  for (RuleId first = 0; first < rules_.size(); ++first) {
    if (state[first] != kNew) continue;
    std::vector<Visit> path;
    const auto open = [&](RuleId rule) {
      state[rule] = kOpen;
      path.push_back({rule, {}});
      left_calls(rule, path.back().calls);
    };
    open(first);
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.calls.empty()) {
        state[visit.rule] = kDone;
        rules_[visit.rule].rank = --rank;
        path.pop_back();
        continue;
      }
      const RuleId next = visit.calls.back();
      visit.calls.pop_back();
      if (state[next] == kOpen)
        fail(ErrorKind::unsupported,
             "grammar: rule {} calls itself before it has read anything (left recursion); write the "
             "repetition with * or + instead",
             quote(rules_[next].name));
      if (state[next] == kNew) open(next);
    }
  }
}

bool Rules::finish(RuleId root, Lexer& lexer) {
  root_ = root;
  drop_unfinishable(lexer);
  find_nullable(lexer.arena());
  rank_rules();
  const Node& start = nodes_[rules_[root].start];
  return start.final || !start.edges.empty();
}

}  // namespace sluice::grammar
