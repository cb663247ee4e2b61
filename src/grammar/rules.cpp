#include "grammar/rules.h"

#include <algorithm>

#include "base/error.h"
#include "base/quote.h"

namespace sluice::grammar {

RuleId Rules::add_rule(std::string name) {
  const RuleId id = rules_.size();
  rules_.push_back({.name = std::move(name)});
  rules_[id].start = add_node(id);
  return id;
}

NodeId Rules::add_node(RuleId rule) {
  if (nodes_.size() >= max_nodes_)
    fail(ErrorKind::resource, "the grammar needs more than {} nodes", max_nodes_);
  nodes_.push_back({.rule = rule, .final = false, .edges = {}});
  return nodes_.size() - 1;
}

void Rules::add_edge(NodeId from, Edge edge) {
  constexpr std::size_t kEdgesPerNode = 8;  // on average: a repeated choice has many at each node
  if (edges_ >= kEdgesPerNode * max_nodes_)
    fail(ErrorKind::resource, "the grammar needs more than {} edges", kEdgesPerNode * max_nodes_);
  ++edges_;
  nodes_[from].edges.push_back(edge);
}

void Rules::add_lexeme(NodeId from, regex::Id regex, NodeId to) {
  if (regex == regex::Arena::kNothing) return;
  if (regex == regex::Arena::kEmpty) return add_skip(from, to);
  add_edge(from, {Edge::Kind::lexeme, regex, to});
}

// A node can be finished if it is final or if a passable edge leads to a node that can; edges that are not
// passable in the end are dropped.
void Rules::drop_unfinishable(regex::Lexer& lexer) {
  struct Waiting {
    NodeId node;
    std::uint32_t edge;
  };
  std::vector<std::vector<Waiting>> waiting_for_node(nodes_.size()), waiting_for_rule(rules_.size());
  std::vector<bool> good(nodes_.size(), false);
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    std::erase_if(nodes_[id].edges, [&](const Edge& edge) {
      return edge.kind == Edge::Kind::lexeme && !lexer.alive(edge.what);
    });
    for (std::uint32_t i = 0; i < nodes_[id].edges.size(); ++i) {
      const Edge& edge = nodes_[id].edges[i];
      waiting_for_node[edge.target].push_back({id, i});
      if (edge.kind == Edge::Kind::call) waiting_for_rule[edge.what].push_back({id, i});
    }
  }
  std::vector<NodeId> found;
  const auto passes = [&](const Edge& edge) {
    return good[edge.target] && (edge.kind != Edge::Kind::call || good[rules_[edge.what].start]);
  };
  const auto add = [&](NodeId id) {
    if (good[id]) return;
    good[id] = true;
    found.push_back(id);
  };
  const auto consider = [&](Waiting waiting) {
    if (passes(nodes_[waiting.node].edges[waiting.edge])) add(waiting.node);
  };
  for (NodeId id = 0; id < nodes_.size(); ++id)
    if (nodes_[id].final) add(id);
  while (!found.empty()) {
    const NodeId id = found.back();
    found.pop_back();
    std::ranges::for_each(waiting_for_node[id], consider);
    const RuleId rule = nodes_[id].rule;
    if (rules_[rule].start == id) std::ranges::for_each(waiting_for_rule[rule], consider);
  }
  for (Node& node : nodes_) std::erase_if(node.edges, [&](const Edge& edge) { return !passes(edge); });
}

// A rule is nullable if its end can be reached over skips and nullable calls and lexemes. Those get a skip
// beside them, so that a rule that is entered always consumes something.
void Rules::find_nullable(const regex::Arena& arena) {
  const auto passes = [&](const Edge& edge) {
    return edge.kind == Edge::Kind::skip || (edge.kind == Edge::Kind::lexeme && arena.nullable(edge.what)) ||
           (edge.kind == Edge::Kind::call && rules_[edge.what].nullable);
  };
  struct Call {
    NodeId node, target;
  };
  std::vector<std::vector<NodeId>> before(nodes_.size());  // over passable edges
  std::vector<std::vector<Call>> calls(rules_.size());
  std::vector<bool> reaches_end(nodes_.size(), false);
  std::vector<NodeId> found;
  const auto add = [&](NodeId id) {
    if (reaches_end[id]) return;
    reaches_end[id] = true;
    found.push_back(id);
  };
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    for (const Edge& edge : nodes_[id].edges) {
      if (edge.kind == Edge::Kind::call) calls[edge.what].push_back({id, edge.target});
      if (passes(edge)) before[edge.target].push_back(id);
    }
    if (nodes_[id].final) add(id);
  }
  while (!found.empty()) {
    const NodeId id = found.back();
    found.pop_back();
    std::ranges::for_each(before[id], add);
    const RuleId rule = nodes_[id].rule;
    if (rules_[rule].start != id) continue;
    rules_[rule].nullable = true;
    for (const Call& call : calls[rule]) {
      before[call.target].push_back(call.node);
      if (reaches_end[call.target]) add(call.node);
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

void Rules::left_calls(RuleId rule, std::vector<bool>& seen, std::vector<RuleId>& calls) const {
  std::vector<NodeId> reached = {rules_[rule].start};
  seen[reached[0]] = true;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const Edge& edge : nodes_[reached[i]].edges) {
      if (edge.kind == Edge::Kind::call) calls.push_back(edge.what);
      if (edge.kind != Edge::Kind::skip || seen[edge.target]) continue;
      seen[edge.target] = true;
      reached.push_back(edge.target);
    }
  }
  std::ranges::sort(calls);
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
}

// Ranks decrease from callees to callers, in the order in which a depth-first search leaves them.
void Rules::rank_rules() {
  enum : std::uint8_t { kNew, kOpen, kDone };
  std::vector<std::uint8_t> state(rules_.size(), kNew);
  std::vector<bool> seen(nodes_.size(), false);  // a node belongs to one rule, which is opened once
  struct Visit {
    RuleId rule;
    std::vector<RuleId> calls;
  };
  std::uint32_t rank = rules_.size();
  for (RuleId first = 0; first < rules_.size(); ++first) {
    if (state[first] != kNew) continue;
    std::vector<Visit> path;
    const auto open = [&](RuleId rule) {
      state[rule] = kOpen;
      path.push_back({rule, {}});
      left_calls(rule, seen, path.back().calls);
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

bool Rules::finish(RuleId root, regex::Lexer& lexer) {
  root_ = root;
  drop_unfinishable(lexer);
  find_nullable(lexer.arena());
  rank_rules();
  const Node& start = nodes_[rules_[root].start];
  return start.final || !start.edges.empty();
}

}  // namespace sluice::grammar
