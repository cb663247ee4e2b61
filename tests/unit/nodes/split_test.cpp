// The division of layers among nodes.
#include "nodes/split.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "expect_error.h"

namespace sluice::nodes {
namespace {

using Counts = std::vector<std::int64_t>;

ModelCost equal_layers(std::size_t layers, LayerCost ends = {}) {
  return {std::vector<LayerCost>(layers, LayerCost{10, 1}), ends};
}

TEST(Split, SharesEqualLayersAmongEqualNodes) {
  const std::vector<NodeStrength> nodes(4);
  EXPECT_EQ(split_layers(equal_layers(40), nodes), (Counts{10, 10, 10, 10}));
}

TEST(Split, GivesTheNodeWithTheHeadFewerLayers) {
  const std::vector<NodeStrength> nodes(2);
  EXPECT_EQ(split_layers(equal_layers(40, {20, 4}), nodes), (Counts{18, 22}));
}

TEST(Split, GivesFasterNodesMore) {
  const std::vector<NodeStrength> nodes{{0, 3}, {0, 1}};
  EXPECT_EQ(split_layers(equal_layers(40), nodes), (Counts{30, 10}));
}

TEST(Split, KeepsWithinMemoryWhereThatIsPossible) {
  std::vector<NodeStrength> nodes{{100, 1}, {1000, 1}};
  EXPECT_EQ(split_layers(equal_layers(40), nodes), (Counts{10, 30}));
  nodes[1].memory = 100;  // experts are then streamed, and speed decides
  EXPECT_EQ(split_layers(equal_layers(40), nodes), (Counts{20, 20}));
}

TEST(Split, RefusesMoreNodesThanLayers) {
  const std::vector<NodeStrength> nodes(3);
  expect_error(ErrorKind::input, {"3 nodes", "2 layers"}, [&] { split_layers(equal_layers(2), nodes); });
}

// Compared with all possible splits.
TEST(Split, IsTheBestOfAll) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> any(0.5, 4);
  for (int round = 0; round < 50; ++round) {
    ModelCost model{{}, {any(random), any(random)}};
    for (int i = 0; i < 9; ++i) model.layers.push_back({any(random), any(random)});
    const std::vector<NodeStrength> nodes{{0, any(random)}, {0, any(random)}, {0, any(random)}};
    const auto slowest = [&](const Counts& counts) {
      double worst = 0;
      std::size_t layer = 0;
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        double active = n == 0 ? model.ends.active : 0;
        for (std::int64_t i = 0; i < counts[n]; ++i) active += model.layers[layer++].active;
        worst = std::max(worst, active / nodes[n].speed);
      }
      return worst;
    };
    double best = 1e300;
    for (std::int64_t a = 1; a <= 7; ++a)
      for (std::int64_t b = 1; a + b <= 8; ++b) best = std::min(best, slowest({a, b, 9 - a - b}));
    const Counts counts = split_layers(model, nodes);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), 9);
    EXPECT_NEAR(slowest(counts), best, 1e-9);
  }
}

}  // namespace
}  // namespace sluice::nodes
