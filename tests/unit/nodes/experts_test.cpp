// A model whose experts are on several nodes gives the bits of a single engine.
#include <gtest/gtest.h>

#include "expect_error.h"
#include "golden_model.h"
#include "nodes/split.h"
#include "shared_model.h"
#include "sluice/experts.h"

namespace sluice {
namespace {

const NodesOptions kByExperts{.layers = "experts"};

class SpreadModel : public ::testing::TestWithParam<std::string> {};

TEST_P(SpreadModel, GivesTheBitsOfOneEngine) {
  const EngineOptions options{.backend = "cpu", .threads = 1, .prefill_chunk = 64};
  if (load_model(GetParam(), options)->summary().experts == 0)
    return expect_error(ErrorKind::input, {"no experts"},
                        [&] { with_nodes(2, GetParam(), options, kByExperts, [](Engine&) {}); });
  expect_same_bits(GetParam(), options, 100, 3, kByExperts);
}

INSTANTIATE_TEST_SUITE_P(Tiny, SpreadModel, ::testing::ValuesIn(golden_model_names()), golden_test_name);
INSTANTIATE_TEST_SUITE_P(Bundled, SpreadModel, ::testing::Values("delta-story", "latent-story"),
                         golden_test_name);

TEST(SpreadModels, StreamTheirPart) {
  for (const char* model : {"delta-story", "mlx-qwen3_5_moe-4bit"})
    expect_same_bits(model, {.backend = "cpu", .threads = 1, .prefill_chunk = 64, .expert_slots = 2}, 80, 3,
                     kByExperts);
}

TEST(SpreadModels, ForeseeWhatTheyWillRead) {
  const EngineOptions options{.backend = "cpu", .threads = 1, .expert_slots = 4};
  with_nodes(2, "delta-story", options, kByExperts, [](Engine& engine) {
    GenerateOptions story;
    story.max_tokens = 60;
    story.ignore_stop_ids = true;
    story.sampling.temperature = 0;
    generate(*engine.new_session(128), engine.encode("Once upon a time"), story);
    EXPECT_GT(expert_usage(engine).foreseen, 0u);
  });
}

// The leading node has room for all of its experts; the other one is told in advance what will be requested.
TEST(SpreadModels, AnnounceExpertsToOtherNodes) {
  nodes::Hub hub(2);
  nodes::on_each_node(2, [&](int rank) {
    Nodes nodes(
        std::make_shared<nodes::Cluster>(std::make_unique<nodes::LocalTransport>(hub, rank),
                                         nodes::Cluster::Options{.patience = std::chrono::seconds(60)}),
        kByExperts);
    EngineOptions options = kOneThread;
    options.expert_slots = rank == 1 ? 4 : 0;
    options.share = nodes.share();
    const auto engine = load_model("delta-story", options);
    options.share = nullptr;
    if (rank == 1) {
      nodes.follow(*engine);
      EXPECT_GT(expert_usage(*engine).foreseen, 0u);
      return;
    }
    const auto session = engine->new_session(64);
    for (std::int32_t id = 0; id < 60; ++id) session->step(50 + 7 * id);
  });
}

// One message per layer and token if the other node has all experts but one, and none if a token chose only
// experts of the leading node.
TEST(SpreadModels, RequestOnlyExpertsOfOtherNodes) {
  constexpr int kSteps = 40;
  const ModelSummary model = load_model("delta-story", kOneThread)->summary();
  const auto asked = [&](std::int64_t own) {
    const NodesOptions settings{.layers = fmt::format("experts:{},{}", own, model.experts - own)};
    const auto seen = with_nodes(2, "delta-story", kOneThread, settings, [](Engine& engine) {
      const auto session = engine.new_session(kSteps);
      for (std::int32_t id = 0; id < kSteps; ++id) session->step(50 + 7 * id);
    });
    return static_cast<double>(seen.commands) / static_cast<double>(kSteps * model.layers);
  };
  EXPECT_NEAR(asked(1), 1, 0.05);
  EXPECT_GT(asked(model.experts - 1), 0);
  EXPECT_LT(asked(model.experts - 1), 0.6);
}

TEST(SpreadModels, ComputeAsTheReferenceDoes) {
  expect_same_bits("qwen3_next", {.backend = "reference", .prefill_chunk = 16}, 40, 3, kByExperts);
}

TEST(SpreadModels, RunManySequences) {
  with_nodes(3, "delta-story", kOneThread, kByExperts, [&](Engine& engine) {
    expect_as_alone(engine, "delta-story", {.parallel = 4, .context = 256}, 8, story_request);
  });
}

TEST(SpreadModels, AgreeBeforeTheyBegin) {
  const EngineOptions options{.backend = "cpu", .threads = 1};
  const auto nothing = [](Engine&) {};
  const std::int64_t experts = load_model("delta-story", options)->summary().experts;
  expect_error(ErrorKind::input, {"'experts:1,1'", "2 experts", std::to_string(experts)},
               [&] { with_nodes(2, "delta-story", options, {.layers = "experts:1,1"}, nothing); });
  expect_error(ErrorKind::input, {"12,20,8", "expert"},
               [&] { with_nodes(2, "delta-story", options, {.layers = "experts:x"}, nothing); });
}

TEST(SpreadModels, SayWhichNodeCannotHoldItsPart) {
  const EngineOptions options{.backend = "cpu", .threads = 1};
  for (const int small : {0, 1})
    expect_error(ErrorKind::resource,
                 {fmt::format("node {} (machine{}): ", small, small), "MB of memory are needed"}, [&] {
                   with_nodes(
                       2, "delta-story", options, kByExperts,
                       [](Engine& engine) { engine.new_session(64)->step(1); },
                       [&](int rank, EngineOptions& own) { own.memory = rank == small ? 1'000'000 : 0; });
                 });
}

TEST(SplitExperts, FollowsSpeedAndMemory) {
  using Counts = std::vector<std::int64_t>;
  const auto split_experts = [](const nodes::ExpertCost& cost,
                                const std::vector<nodes::NodeStrength>& processors) {
    std::vector<nodes::NodeStrengths> nodes;
    for (const nodes::NodeStrength& own : processors) nodes.push_back({.processors = own});
    return nodes::split_experts(cost, nodes);
  };
  const nodes::ExpertCost model{.experts = 100, .bytes = 1e9, .dense = 20e9};
  EXPECT_EQ(split_experts(model, {{0, 1}, {0, 1}}), (Counts{50, 50}));
  EXPECT_EQ(split_experts(model, {{0, 1}, {0, 3}}), (Counts{25, 75}));
  // The first node has 20 GB of other weights, so 30 experts fill its 50 GB.
  EXPECT_EQ(split_experts(model, {{50e9, 1}, {0, 1}}), (Counts{30, 70}));
  // If no node has room, only speed decides about the rest.
  const Counts crowded = split_experts(model, {{30e9, 1}, {10e9, 1}});
  EXPECT_EQ(crowded, (Counts{50, 50}));
  expect_error(ErrorKind::input, {"3 nodes", "2 experts"},
               [&] { split_experts({.experts = 2}, std::vector<nodes::NodeStrength>(3)); });
}

// For a model in which three quarters of the weights, and half of what a token reads, are experts.
TEST(StrengthTogether, IsOfTheFirstNodeAndOfAllProcessors) {
  const nodes::TokenCost token{.read = 2, .experts_read = 1, .experts_held = 0.75};
  const auto together = [&](const std::vector<nodes::NodeStrengths>& nodes) {
    const nodes::NodeStrength all = nodes::strength_together(nodes, token);
    return std::pair(all.memory, all.speed);
  };
  const nodes::NodeStrengths slow{{30, 1}, {30, 1}};
  const nodes::NodeStrengths fast{{60, 3}, {60, 3}};
  EXPECT_EQ(together({fast}), std::pair(60.0, 3.0));
  EXPECT_EQ(together({slow, fast}), std::pair(90.0, 2 / (1.0 / 1 + 1.0 / 4)));
  EXPECT_EQ(together({fast, slow}), std::pair(90.0, 2 / (1.0 / 3 + 1.0 / 4)));
  // 40 bytes on the device are enough for a model of 160, 90 in host memory for 120; 10 are enough for 40.
  EXPECT_EQ(together({{{40, 10}, {30, 1}, true}, fast}), std::pair(120.0, 2 / (1.0 / 10 + 1.0 / 4)));
  EXPECT_EQ(together({{{10, 10}, {30, 1}, true}, fast}).first, 40.0);
  EXPECT_EQ(together({{{10, 10}, {0, 1}, true}, fast}).first, 40.0);
  EXPECT_EQ(together({{{0, 10}, {0, 1}, true}, fast}).first, 0.0) << "enough of both";
}

}  // namespace
}  // namespace sluice
