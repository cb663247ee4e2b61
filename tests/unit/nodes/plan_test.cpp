// Plans of several machines compared with manual arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "expect_error.h"
#include "sluice/nodes_plan.h"

namespace sluice {
namespace {

struct Link {
  double gbit;
  double round_trip_us;
};
constexpr Link kLinks[] = {{1, 150}, {10, 60}, {100, 8}};

// Nodes that read 80 GB/s.
NodesSpec nodes_of(int count, const Link& link, double memory = 0) {
  return {.nodes = std::vector<NodeSpec>(static_cast<std::size_t>(count), {"node", memory, 80e9}),
          .network = {link.gbit * 1e9 / 8, link.round_trip_us * 1e-6}};
}

struct Shape {
  std::int64_t layers;
  std::int64_t layers_with_experts;
  std::int64_t hidden;
  std::int64_t experts;
  std::int64_t chosen;
  std::int64_t inner;  // of an expert
  double weights;      // in 1e9
  double active;
};
constexpr Shape kDeepseek{61, 58, 7168, 256, 8, 2048, 671, 37};
constexpr Shape kQwen397{60, 60, 4096, 512, 10, 1024, 397, 17};
constexpr Shape kQwen35{40, 40, 2048, 256, 8, 512, 35, 3};

// With 4.5 bits per weight.
ModelSummary model_of(const Shape& shape) {
  ModelSummary model;
  model.layers = shape.layers;
  model.hidden = shape.hidden;
  model.experts = shape.experts;
  model.experts_per_token = shape.chosen;
  const double bytes = 4.5 / 8;
  const double experts = static_cast<double>(shape.layers_with_experts * shape.experts) * 3 *
                         static_cast<double>(shape.hidden * shape.inner) * bytes;
  model.weight_bytes = static_cast<std::size_t>(shape.weights * 1e9 * bytes);
  model.bytes_per_token = static_cast<std::size_t>(shape.active * 1e9 * bytes);
  model.parts.push_back({PartKind::experts, 0, static_cast<std::size_t>(experts)});
  return model;
}

ModelSummary deepseek() {
  return model_of(kDeepseek);
}

const NodesPlan::Layout& layout(const NodesPlan& plan, std::string_view name) {
  for (const NodesPlan::Layout& one : plan.layouts)
    if (one.name == name) return one;
  throw std::out_of_range(std::string(name));
}

TEST(PlanNodes, CountsTheMessagesOfExperts) {
  // 61 layers: a round trip, one row out (except for one of 256 tokens) and on average four of eight back.
  const double expected_ms[] = {80, 10.6, 1.2};
  for (int i = 0; i < 3; ++i) {
    const NodesPlan plan = plan_nodes(deepseek(), nodes_of(2, kLinks[i]));
    EXPECT_NEAR(layout(plan, "experts").network_seconds * 1e3, expected_ms[i], 0.02 * expected_ms[i]);
    EXPECT_EQ(layout(plan, "experts").nodes, "experts:128,128");
    EXPECT_EQ(layout(plan, "layers").nodes, "31,30");
  }
}

TEST(PlanNodes, CostsAPipelineNextToNothing) {
  const double alone = 80e9 / (37e9 * 4.5 / 8);  // 3.8
  EXPECT_NEAR(plan_nodes(deepseek(), nodes_of(1, kLinks[0])).layouts[0].tokens_per_second, alone, 0.01);
  for (const Link& link : kLinks)
    EXPECT_NEAR(layout(plan_nodes(deepseek(), nodes_of(2, link)), "layers").tokens_per_second, alone, 0.02);
}

TEST(PlanNodes, WaitsForTheBusiestNode) {
  // Ignoring the network: of eight choices the busier of two nodes gets 0.637 on average.
  const ModelSummary model = deepseek();
  const Link none{1e9, 0};
  const double chosen = 58.0 * 8 * 3 * 7168 * 2048 * 4.5 / 8;
  const double dense = 37e9 * 4.5 / 8 - chosen;
  double mean = 0;  // of the larger part, over all 2^8 ways to distribute eight choices
  for (int ways = 0; ways < 256; ++ways) {
    const int own = __builtin_popcount(static_cast<unsigned>(ways));
    mean += std::max(own, 8 - own) / 8.0 / 256;
  }
  EXPECT_NEAR(mean, 0.637, 0.001);
  EXPECT_NEAR(layout(plan_nodes(model, nodes_of(2, none)), "experts").tokens_per_second,
              80e9 / (dense + mean * chosen), 1e-3);
  double mean_of_four = 0;
  for (int ways = 0; ways < 65536; ++ways) {
    int counts[4] = {};
    for (int i = 0; i < 8; ++i) ++counts[(ways >> (2 * i)) & 3];
    mean_of_four += *std::max_element(counts, counts + 4) / 8.0 / 65536;
  }
  EXPECT_NEAR(mean_of_four, 0.44, 0.01);
  EXPECT_NEAR(layout(plan_nodes(model, nodes_of(4, none)), "experts").tokens_per_second,
              80e9 / (dense + mean_of_four * chosen), 1e-3);
}

// Tokens per second by manual arithmetic, for nodes that send back one sum per layer; these nodes send a row
// per choice, and the difference is subtracted. With four nodes, the first one has a GPU.
TEST(PlanNodes, AgreesWithArithmeticOnPaper) {
  struct Row {
    Shape model;
    int nodes;
    double network_ms[3];  // at 1, 10 and 100 Gb/s; 0: not computed
    double tokens_per_second[3];
  };
  const Row rows[] = {{kQwen35, 2, {12, 3.0, 0.4}, {33, 47, 53}},
                      {kQwen397, 2, {26, 5.3, 0}, {8.0, 9.5, 10}},
                      {kQwen397, 4, {57, 8.4, 0}, {12, 31, 40}},
                      {kDeepseek, 2, {37, 0, 0}, {4.1, 4.7, 4.8}},
                      {kDeepseek, 4, {85, 11, 0}, {6.6, 13, 15}}};
  for (const Row& row : rows)
    for (int i = 0; i < 3; ++i) {
      NodesSpec spec = nodes_of(row.nodes, kLinks[i]);
      if (row.nodes == 4) {
        spec.nodes[0].gpu_memory = 80e9;
        spec.nodes[0].gpu_bytes_per_second = 3.35e12;
      }
      const NodesPlan::Layout planned = layout(plan_nodes(model_of(row.model), spec), "experts");
      const double others = 1 - 1.0 / row.nodes;
      const double chosen = static_cast<double>(row.model.chosen);
      const double touched = (row.nodes - 1) * (1 - std::pow(others, chosen));
      const double row_seconds =
          static_cast<double>(row.model.hidden) * sizeof(float) / spec.network.bytes_per_second;
      const double more = static_cast<double>(row.model.layers) * (chosen * others - touched) * row_seconds;
      const double network = planned.network_seconds - more;
      if (row.network_ms[i] > 0) {
        EXPECT_NEAR(network * 1e3, row.network_ms[i], 0.08 * row.network_ms[i]) << row.nodes << " at " << i;
      }
      EXPECT_NEAR(1 / (1 / planned.tokens_per_second - more), row.tokens_per_second[i],
                  0.08 * row.tokens_per_second[i])
          << row.model.weights << "e9 on " << row.nodes << " at " << kLinks[i].gbit << " Gb/s";
    }
}

TEST(PlanNodes, GivesAGpuWhatEveryTokenUses) {
  const ModelSummary model = deepseek();
  NodesSpec spec = nodes_of(4, kLinks[2], 120e9);
  // 381 GB: 12 GB that every token uses, and experts.
  const auto as = [&](std::string_view name) { return layout(plan_nodes(model, spec), name); };
  const double before = as("experts").tokens_per_second;
  spec.nodes[0].gpu_memory = 24e9;
  spec.nodes[0].gpu_bytes_per_second = 800e9;
  EXPECT_GT(as("experts").tokens_per_second, 1.5 * before);
  EXPECT_TRUE(as("experts").fits);
  spec.nodes[0].gpu_memory = 4e9;
  EXPECT_FALSE(as("experts").fits);
  // If not all nodes have a GPU, processors compute the layers and the groups.
  EXPECT_TRUE(as("experts").with_gpus);
  EXPECT_FALSE(as("layers").with_gpus);
  EXPECT_FALSE(as("groups").with_gpus);
  EXPECT_TRUE(as("layers").fits);
  EXPECT_EQ(as("layers").tokens_per_second,
            layout(plan_nodes(model, nodes_of(4, kLinks[2], 120e9)), "layers").tokens_per_second);
  // If all nodes have a GPU, layers are in its memory.
  for (NodeSpec& node : spec.nodes) node = spec.nodes[0];
  EXPECT_TRUE(as("layers").with_gpus);
  EXPECT_FALSE(as("layers").fits);
  // Two groups of two: a head holds half of the 12 GB.
  for (NodeSpec& node : spec.nodes) node.gpu_memory = 7e9;
  EXPECT_FALSE(as("experts").fits);
  EXPECT_TRUE(as("groups").with_gpus);
  EXPECT_TRUE(as("groups").fits);
  EXPECT_GT(as("groups").tokens_per_second, 1.2 * before);
  const NodesSpec read = parse_nodes(
      R"({"nodes": [{"memory_gb": 64, "gb_per_s": 80, "gpu_memory_gb": 24, "gpu_gb_per_s": 800}],
          "network": {"gbit_per_s": 1, "round_trip_us": 100}})",
      "file");
  EXPECT_EQ(read.nodes[0].gpu_memory, 24e9);
  EXPECT_EQ(read.nodes[0].gpu_bytes_per_second, 800e9);
  expect_error(ErrorKind::input, {"node 0", "gpu_gb_per_s is missing"}, [] {
    parse_nodes(R"({"nodes": [{"memory_gb": 64, "gb_per_s": 80, "gpu_memory_gb": 24}], "network": {}})",
                "file");
  });
}

TEST(PlanNodes, GroupsNodes) {
  // Ignoring the network, two groups of two are as fast as two nodes that share experts: each group has half
  // of the layers, and its head reads half of what every token uses.
  const ModelSummary model = deepseek();
  const Link none{1e9, 0};
  const auto as = [&](const NodesSpec& spec, std::string_view name) {
    return layout(plan_nodes(model, spec), name);
  };
  NodesSpec four = nodes_of(4, none);
  const double pair = as(nodes_of(2, none), "experts").tokens_per_second;
  EXPECT_GE(as(four, "groups").tokens_per_second, 0.999 * pair);
  // The grouping with the most nodes in a group reads the least: all but one share experts.
  EXPECT_LT(as(four, "groups").tokens_per_second, as(four, "experts").tokens_per_second);
  // At 1 Gb/s messages cost more than reading, so as few layers as possible have shared experts: one, unless
  // otherwise requested.
  const NodesPlan::Layout slow = as(nodes_of(3, kLinks[0]), "groups");
  EXPECT_LT(slow.tokens_per_second, as(nodes_of(3, kLinks[0]), "layers").tokens_per_second);
  // A head without room for what all layers use leaves some layers to another group.
  four = nodes_of(4, kLinks[2], 110e9);
  const NodesPlan plan = plan_nodes(model, four);
  EXPECT_TRUE(layout(plan, "groups").fits);
  EXPECT_GT(layout(plan, "groups").tokens_per_second, layout(plan, "layers").tokens_per_second);
  EXPECT_THROW(layout(plan_nodes(model, nodes_of(2, none)), "groups"), std::out_of_range);
}

TEST(PlanNodes, NamesImprovements) {
  // Two nodes of 200 GB hold the 377 GB; sharing experts is slower at 1 Gb/s and faster at 10.
  const NodesPlan slow = plan_nodes(deepseek(), nodes_of(2, kLinks[0], 200e9));
  EXPECT_EQ(slow.layouts[0].name, "layers");
  EXPECT_TRUE(slow.layouts[0].fits);
  ASSERT_FALSE(slow.help.empty());
  EXPECT_EQ(slow.help[0].what, "a network of 10 Gb/s");
  EXPECT_GT(slow.help[0].tokens_per_second, 1.05 * slow.layouts[0].tokens_per_second);
  EXPECT_EQ(plan_nodes(deepseek(), nodes_of(2, kLinks[1], 200e9)).layouts[0].name, "experts");
  // With 150 GB each, a third node is needed.
  const NodesPlan small = plan_nodes(deepseek(), nodes_of(2, kLinks[1], 150e9));
  EXPECT_FALSE(small.layouts[0].fits);
  ASSERT_EQ(small.help.size(), 1u);
  EXPECT_EQ(small.help[0].what, "one more machine like node");
}

TEST(PlanNodes, ReadsAFile) {
  const NodesSpec spec = parse_nodes(
      R"({"nodes": [{"name": "anna", "memory_gb": 64, "gb_per_s": 80}, {"memory_gb": 32, "gb_per_s": 40.5}],
          "network": {"gbit_per_s": 2.5, "round_trip_us": 100}})",
      "file");
  ASSERT_EQ(spec.nodes.size(), 2u);
  EXPECT_EQ(spec.nodes[0].name, "anna");
  EXPECT_EQ(spec.nodes[1].name, "node 1");
  EXPECT_EQ(spec.nodes[1].memory, 32e9);
  EXPECT_EQ(spec.nodes[1].bytes_per_second, 40.5e9);
  EXPECT_EQ(spec.network.bytes_per_second, 2.5e9 / 8);
  EXPECT_DOUBLE_EQ(spec.network.round_trip, 100e-6);
  const auto refused = [](std::string_view json, std::initializer_list<std::string_view> parts) {
    expect_error(ErrorKind::input, parts, [&] { parse_nodes(json, "file"); });
  };
  refused("[]", {"file", "\"nodes\""});
  refused(R"({"nodes": [], "network": {}})", {"\"nodes\""});
  refused(R"({"nodes": [1], "network": {}})", {"node 0", "memory_gb"});
  refused(R"({"nodes": [{"memory_gb": 1, "gb_per_s": -1}], "network": {}})", {"node 0", "gb_per_s", "-1"});
  refused(R"({"nodes": [{"memory_gb": 1, "gb_per_s": 1}], "network": 3})", {"network", "gbit_per_s"});
}

}  // namespace
}  // namespace sluice
