#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/integer_cast.h"
#include "base/json.h"
#include "nodes/split.h"
#include "sluice/nodes_plan.h"

namespace sluice {

namespace {

struct Cost {
  explicit Cost(const ModelSummary& model)
      : layers(model.layers),
        experts(model.experts),
        chosen(model.experts_per_token),
        row(to_double(model.hidden) * sizeof(float)),
        weights(model.weight_bytes),
        expert_weights(model.bytes_of(PartKind::experts)),
        read(model.bytes_per_token),
        experts_read(experts > 0 ? expert_weights * to_double(chosen) / to_double(experts) : 0) {}

  std::int64_t layers;
  std::int64_t experts;
  std::int64_t chosen;
  double row;  // bytes of a token's row
  double weights;
  double expert_weights;
  double read;          // per token
  double experts_read;  // of that
};

std::vector<nodes::NodeStrength> strengths(const NodesSpec& spec) {
  std::vector<nodes::NodeStrength> all;
  for (const NodeSpec& node : spec.nodes) all.push_back({node.memory, node.bytes_per_second});
  return all;
}

// One after the other: a message from each to the next, and one back to the first.
NodesPlan::Layout plan_layers(const Cost& cost, const NodesSpec& spec) {
  const double count = cost.layers;
  nodes::ModelCost model;
  model.layers.assign(to_size(cost.layers), {cost.weights / count, cost.read / count});
  NodesPlan::Layout layout{
      .name = "layers", .split = nodes::split_layers(model, strengths(spec)), .fits = true};
  double seconds = 0;
  for (std::size_t n = 0; n < spec.nodes.size(); ++n) {
    const auto part = to_double(layout.split[n]) / count;
    const NodeSpec& node = spec.nodes[n];
    layout.fits = layout.fits && (node.memory == 0 || part * cost.weights <= node.memory);
    seconds += part * cost.read / node.bytes_per_second;
  }
  if (spec.nodes.size() > 1)
    layout.network_seconds = to_double(spec.nodes.size()) *
                             (spec.network.round_trip / 2 + cost.row / spec.network.bytes_per_second);
  layout.tokens_per_second = 1 / (seconds + layout.network_seconds);
  return layout;
}

// The mean time of the node that is the last to have its share of `chosen` experts, where each choice falls
// to node n with probability share[n] and takes it time[n]. The chance that all are done by then is the
// number of ways to share the choices so: a product of truncated exponential series.
double busiest(std::int64_t chosen, const std::vector<double>& share, const std::vector<double>& time) {
  std::vector<double> ends;
  for (const double one : time)
    for (std::int64_t c = 0; c <= chosen; ++c) ends.push_back(to_double(c) * one);
  std::sort(ends.begin(), ends.end());
  double mean = 0;
  double before = 0;
  for (const double end : ends) {
    std::vector<double> ways(to_size(chosen) + 1);
    ways[0] = 1;
    for (std::size_t n = 0; n < share.size(); ++n) {
      std::vector<double> more(ways.size());
      for (std::size_t have = 0; have < ways.size(); ++have) {
        double term = ways[have];
        for (std::size_t c = 0; have + c < ways.size() && to_double(c) * time[n] <= end; ++c) {
          more[have + c] += term;
          term *= share[n] / to_double(c + 1);
        }
      }
      ways = more;
    }
    const double done = ways.back() * std::tgamma(to_double(chosen) + 1);
    mean += (done - before) * end;
    before = done;
  }
  return mean;
}

// In each layer the leading node asks the others, computes its own choices, and waits for theirs. Its link
// carries a row to each that is asked, and back a row per choice.
NodesPlan::Layout plan_experts(const Cost& cost, const NodesSpec& spec) {
  const double count = cost.experts;
  const double dense = cost.weights - cost.expert_weights;
  NodesPlan::Layout layout{
      .name = "experts",
      .split = nodes::split_experts({cost.experts, cost.expert_weights / count, dense}, strengths(spec)),
      .fits = true};
  std::vector<double> share;
  std::vector<double> time;
  double rows = 0;
  for (std::size_t n = 0; n < spec.nodes.size(); ++n) {
    const NodeSpec& node = spec.nodes[n];
    share.push_back(to_double(layout.split[n]) / count);
    time.push_back(cost.experts_read / to_double(cost.chosen) / node.bytes_per_second);
    const double held = share[n] * cost.expert_weights + (n == 0 ? dense : 0);
    layout.fits = layout.fits && (node.memory == 0 || held <= node.memory);
    const double chosen = cost.chosen;
    if (n > 0) rows += 1 - std::pow(1 - share[n], chosen) + chosen * share[n];
  }
  if (spec.nodes.size() > 1)
    layout.network_seconds =
        to_double(cost.layers) * (spec.network.round_trip + rows * cost.row / spec.network.bytes_per_second);
  const double first = (cost.read - cost.experts_read) / spec.nodes[0].bytes_per_second;
  layout.tokens_per_second = 1 / (first + busiest(cost.chosen, share, time) + layout.network_seconds);
  return layout;
}

std::vector<NodesPlan::Layout> plan_layouts(const Cost& cost, const NodesSpec& spec) {
  const std::int64_t count = std::ssize(spec.nodes);
  std::vector<NodesPlan::Layout> layouts;
  if (count <= cost.layers) layouts.push_back(plan_layers(cost, spec));
  if (count <= cost.experts) layouts.push_back(plan_experts(cost, spec));
  std::stable_sort(layouts.begin(), layouts.end(), [](const auto& a, const auto& b) {
    return a.fits != b.fits ? a.fits : a.tokens_per_second > b.tokens_per_second;
  });
  return layouts;
}

double positive(const Json& object, const char* key, const std::string& where) {
  const std::string name = fmt::format("{}: {}", where, key);
  if (!object.is_object() || !object.contains(key)) fail(ErrorKind::input, "{} is missing", name);
  const auto value = json_as<double>(object.at(key), {name, ErrorKind::input});
  if (!(value > 0)) fail(ErrorKind::input, "{} must be more than 0, not {}", name, value);
  return value;
}

}  // namespace

NodesSpec parse_nodes(std::string_view json, const std::string& where) {
  const Json root = parse_json(json, {where, ErrorKind::input});
  if (!root.is_object() || !root.contains("nodes") || !root.at("nodes").is_array() ||
      root.at("nodes").empty() || !root.contains("network"))
    fail(ErrorKind::input, "{}: a plan needs a list of \"nodes\" and a \"network\"", where);
  NodesSpec spec;
  for (const Json& node : root.at("nodes")) {
    const std::string place = fmt::format("{}: node {}", where, spec.nodes.size());
    NodeSpec& own = spec.nodes.emplace_back();
    own.memory = positive(node, "memory_gb", place) * 1e9;
    own.bytes_per_second = positive(node, "gb_per_s", place) * 1e9;
    if (node.contains("disk_gb_per_s"))
      own.disk_bytes_per_second = json_as<double>(node.at("disk_gb_per_s"), {place, ErrorKind::input}) * 1e9;
    own.name = node.contains("name") ? json_as<std::string>(node.at("name"), {place, ErrorKind::input})
                                     : fmt::format("node {}", spec.nodes.size() - 1);
  }
  const std::string place = where + ": network";
  spec.network.bytes_per_second = positive(root.at("network"), "gbit_per_s", place) * 1e9 / 8;
  spec.network.round_trip = positive(root.at("network"), "round_trip_us", place) * 1e-6;
  return spec;
}

NodesPlan plan_nodes(const ModelSummary& model, const NodesSpec& spec) {
  constexpr NetworkSpec kFaster{.bytes_per_second = 10e9 / 8, .round_trip = 60e-6};
  const Cost cost(model);
  NodesPlan plan{.layouts = plan_layouts(cost, spec), .help = {}};
  if (plan.layouts.empty())
    fail(ErrorKind::input, "{} nodes are more than the model has layers", spec.nodes.size());
  const auto consider = [&](const std::string& what, const NodesSpec& changed) {
    const std::vector<NodesPlan::Layout> layouts = plan_layouts(cost, changed);
    if (layouts.empty()) return;
    const NodesPlan::Layout& now = plan.layouts[0];
    const bool better = layouts[0].fits != now.fits
                            ? layouts[0].fits
                            : layouts[0].tokens_per_second > 1.05 * now.tokens_per_second;
    if (better) plan.help.push_back({what, layouts[0].tokens_per_second});
  };
  NodesSpec faster = spec;
  faster.network = kFaster;
  if (spec.network.bytes_per_second < kFaster.bytes_per_second) consider("a network of 10 Gb/s", faster);
  NodesSpec larger = spec;
  larger.nodes.push_back(spec.nodes.back());
  consider(fmt::format("one more machine like {}", spec.nodes.back().name), larger);
  return plan;
}

}  // namespace sluice
