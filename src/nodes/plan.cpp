#include <fmt/format.h>

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
  double row;  // bytes of one token's row of activations
  double weights;
  double expert_weights;
  double read;          // per token
  double experts_read;  // of `read`
};

nodes::NodeStrengths strengths_of(const NodeSpec& node, bool with_gpu) {
  const nodes::NodeStrength processors{node.memory, node.bytes_per_second};
  if (!with_gpu) return {processors, processors};
  return {{node.gpu_memory, node.gpu_bytes_per_second}, processors, true};
}

// Whether the GPUs of nodes grouped this way are used: the first node of each group has one, and either all
// nodes compute experts on theirs or none does.
bool uses_gpus(const NodesSpec& spec, const std::vector<std::size_t>& sizes) {
  std::size_t head = 0;
  for (const std::size_t size : sizes) {
    if (!spec.nodes[head].has_gpu() || (size == 1) != (sizes[0] == 1)) return false;
    head += size;
  }
  return true;
}

// The expected time of the slowest node for `chosen` experts, where each choice falls on node n with
// probability share[n] and takes it time[n]. The probability that all are done by a time is the number of
// ways to distribute the choices accordingly: a product of truncated exponential series.
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

// One way to share the model among the nodes in order: consecutive stages of these sizes. In each layer of a
// stage with several nodes, the first node sends requests to the others, computes its own choices and waits
// for the results; its link carries one row to each requested node and one row per choice back. The experts
// of such a stage run on the processors, everything else on the first node's GPU. If some stage has no such
// GPU, processors compute everything.
class Staged {
 public:
  Staged(const Cost& cost, const NodesSpec& spec, const std::vector<std::size_t>& sizes)
      : cost_(cost), spec_(spec), sizes_(sizes) {
    layout_.with_gpus = uses_gpus(spec, sizes);
    for (const NodeSpec& node : spec.nodes)
      strengths_.push_back(strengths_of(node, layout_.with_gpus && node.has_gpu()));
  }

  NodesPlan::Layout plan() {
    const std::vector<std::int64_t> layers = share_layers();
    std::size_t node = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      add_stage(layers[i], node, sizes_[i]);
      node += sizes_[i];
    }
    // One message from each stage to the next, and one back to the first.
    const NetworkSpec& network = spec_.network;
    if (sizes_.size() > 1)
      layout_.network_seconds +=
          to_double(sizes_.size()) * (network.round_trip / 2 + cost_.row / network.bytes_per_second);
    layout_.tokens_per_second = 1 / (seconds_ + layout_.network_seconds);
    name();
    return layout_;
  }

 private:
  std::vector<std::int64_t> share_layers() const {
    nodes::ModelCost model;
    const double count = cost_.layers;
    model.layers.assign(to_size(cost_.layers), {cost_.weights / count, cost_.read / count});
    const double experts_held = cost_.expert_weights / cost_.weights;
    std::vector<nodes::NodeStrength> stages;
    std::size_t node = 0;
    for (const std::size_t size : sizes_) {
      stages.push_back(nodes::strength_together(std::span(strengths_).subspan(node, size),
                                                {cost_.read, cost_.experts_read, experts_held}));
      node += size;
    }
    return nodes::split_layers(model, stages);
  }

  void add_stage(std::int64_t layers, std::size_t first, std::size_t size) {
    const double part = to_double(layers) / to_double(cost_.layers);
    const auto nodes = std::span(std::as_const(strengths_)).subspan(first, size);
    const nodes::NodeStrengths& head = nodes[0];
    stages_.push_back(fmt::format("{}", layers));
    if (size == 1) {
      add_held(head.whole.memory, part * cost_.weights);
      seconds_ += part * cost_.read / head.whole.speed;
      return;
    }
    const double count = cost_.experts;
    const double dense = part * (cost_.weights - cost_.expert_weights);
    const double beside = head.has_device ? 0 : dense;  // of the first node's memory for experts
    if (head.has_device) add_held(head.whole.memory, dense);
    const std::vector<std::int64_t> experts =
        nodes::split_experts({cost_.experts, part * cost_.expert_weights / count, beside}, nodes);
    std::vector<double> share;
    std::vector<double> time;
    double rows = 0;
    for (std::size_t n = 0; n < size; ++n) {
      share.push_back(to_double(experts[n]) / count);
      time.push_back(part * cost_.experts_read / to_double(cost_.chosen) / nodes[n].processors.speed);
      add_held(nodes[n].processors.memory, part * share[n] * cost_.expert_weights + (n == 0 ? beside : 0));
      const double chosen = cost_.chosen;
      if (n > 0) rows += 1 - std::pow(1 - share[n], chosen) + chosen * share[n];
    }
    const NetworkSpec& network = spec_.network;
    layout_.network_seconds +=
        to_double(layers) * (network.round_trip + rows * cost_.row / network.bytes_per_second);
    seconds_ +=
        part * (cost_.read - cost_.experts_read) / head.whole.speed + busiest(cost_.chosen, share, time);
    stages_.back() = sizes_.size() == 1 ? fmt::format("experts:{}", fmt::join(experts, ","))
                                        : fmt::format("{}:{}", layers, fmt::join(experts, "+"));
  }

  void add_held(double memory, double bytes) {
    layout_.fits = layout_.fits && (memory == 0 || bytes <= memory);
  }

  void name() {
    layout_.nodes = fmt::format("{}", fmt::join(stages_, ","));
    const bool single = std::all_of(sizes_.begin(), sizes_.end(), [](std::size_t size) { return size == 1; });
    layout_.name = single ? "layers" : sizes_.size() == 1 ? "experts" : "groups";
  }

  const Cost& cost_;
  const NodesSpec& spec_;
  std::vector<nodes::NodeStrengths> strengths_;
  const std::vector<std::size_t>& sizes_;
  std::vector<std::string> stages_;
  double seconds_ = 0;
  NodesPlan::Layout layout_{.name = {}, .nodes = {}, .fits = true};
};

// The best layout of each name, best first.
std::vector<NodesPlan::Layout> plan_layouts(const Cost& cost, const NodesSpec& spec) {
  constexpr std::size_t kMost = 12;  // up to this many nodes every grouping is tried
  const auto before = [](const NodesPlan::Layout& a, const NodesPlan::Layout& b) {
    return a.fits != b.fits ? a.fits : a.tokens_per_second > b.tokens_per_second;
  };
  std::vector<NodesPlan::Layout> layouts;
  const auto consider = [&](const std::vector<std::size_t>& sizes) {
    const std::size_t largest = *std::max_element(sizes.begin(), sizes.end());
    if (std::ssize(sizes) > cost.layers || (largest > 1 && to_double(largest) > to_double(cost.experts)))
      return;
    const NodesPlan::Layout layout = Staged(cost, spec, sizes).plan();
    const auto same = std::find_if(layouts.begin(), layouts.end(),
                                   [&](const auto& one) { return one.name == layout.name; });
    if (same == layouts.end())
      layouts.push_back(layout);
    else if (before(layout, *same))
      *same = layout;
  };
  const std::size_t count = spec.nodes.size();
  consider(std::vector<std::size_t>(count, 1));
  if (count > 1) consider({count});
  // Bit i: a stage ends after node i.
  for (std::uint32_t ends = 1; count <= kMost && ends + 1 < 1u << (count - 1); ++ends) {
    std::vector<std::size_t> sizes{1};
    for (std::size_t i = 0; i + 1 < count; ++i)
      if ((ends >> i & 1) != 0)
        sizes.push_back(1);
      else
        ++sizes.back();
    consider(sizes);
  }
  std::stable_sort(layouts.begin(), layouts.end(), before);
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
    if (node.contains("gpu_memory_gb") || node.contains("gpu_gb_per_s")) {
      own.gpu_memory = positive(node, "gpu_memory_gb", place) * 1e9;
      own.gpu_bytes_per_second = positive(node, "gpu_gb_per_s", place) * 1e9;
    }
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
