// Sharing layers and experts at the same time: the bits of one engine, and which node holds what.
#include "nodes/layout.h"

#include <gtest/gtest.h>

#include "engine/core.h"
#include "expect_error.h"
#include "golden_model.h"
#include "shared_model.h"

namespace sluice {
namespace {

using nodes::Layout;
using nodes::parse_layout;
using Counts = std::vector<std::int64_t>;

Counts layers_of(const Layout& layout) {
  Counts layers;
  for (const nodes::Stage& stage : layout) layers.push_back(stage.layers);
  return layers;
}

std::vector<Counts> experts_of(const Layout& layout) {
  std::vector<Counts> experts;
  for (const nodes::Stage& stage : layout) experts.push_back(stage.experts);
  return experts;
}

TEST(LayoutOfNodes, IsRead) {
  const auto expect = [](const char* text, int count, const Counts& layers,
                         const std::vector<Counts>& experts) {
    EXPECT_EQ(layers_of(parse_layout(text, count)), layers) << text;
    EXPECT_EQ(experts_of(parse_layout(text, count)), experts) << text;
  };
  expect("auto", 3, {0, 0, 0}, {{0}, {0}, {0}});
  expect("12,20,8", 3, {12, 20, 8}, {{0}, {0}, {0}});
  expect("experts", 2, {0}, {{0, 0}});
  expect("experts:64,192", 2, {0}, {{64, 192}});
  expect("groups:2,1", 3, {0, 0}, {{0, 0}, {0}});
  expect("12:64+192,28", 3, {12, 28}, {{64, 192}, {0}});
  for (const char* wrong : {"", "12,", ",8", "0,8", "-1,3", "a,b", "3 4", "12;8", "groups:", "groups:0,2",
                            "12:", "12:4", "12:4+", "12:4+0", ":4+4", "experts:", "groups"})
    expect_error(ErrorKind::input, {wrong, "12,20,8"}, [&] { parse_layout(wrong, 2); });
  for (const auto& [text, count] : {std::pair("4,4", "2 nodes"),
                                    {"groups:2,2", "4 nodes"},
                                    {"experts:4,4", "2 nodes"},
                                    {"4:1+1,4:2+2", "4 nodes"}})
    expect_error(ErrorKind::input, {text, count, "there are 3"}, [&] { parse_layout(text, 3); });
}

TEST(LayoutOfNodes, GivesEachNodeItsPlace) {
  const Layout layout{{12, {64, 192}}, {8, {0}}, {20, {100, 100, 56}}};
  const auto third = nodes::place_of(layout, 2);
  EXPECT_EQ(third.heads, (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(third.head(), 2);
  EXPECT_EQ(third.layers.first, 12);
  EXPECT_EQ(third.layers.end, 20);
  EXPECT_TRUE(third.first_experts.empty());
  const auto last = nodes::place_of(layout, 5);
  EXPECT_EQ(last.head(), 3);
  EXPECT_EQ(last.layers.first, 20);
  EXPECT_EQ(last.layers.end, 40);
  EXPECT_EQ(last.first_experts, (Counts{0, 100, 200, 256}));
}

void expect_bits_in_groups(const std::string& model, const EngineOptions& options, int count,
                           const std::string& layout) {
  const std::vector<std::int32_t> ids = some_tokens(80);
  const std::vector<float> want = transcript(*load_model(model, options), ids);
  std::vector<float> got;
  with_nodes(count, model, options, {.layers = layout},
             [&](Engine& engine) { got = transcript(engine, ids); });
  EXPECT_TRUE(got == want) << model << " as " << layout;
}

// The number of experts in these layers; 0: none.
std::int64_t experts_in(Engine& engine, std::int64_t first, std::int64_t end) {
  const std::vector<layers::DecoderLayer>& layers = engine::core(engine).model.decoder.layers;
  for (std::int64_t i = first; i < end; ++i)
    if (const auto* moe = std::get_if<layers::Moe>(&layers[to_size(i)].mlp))
      return moe->router.gate.shape()[0];
  return 0;
}

class GroupedModel : public ::testing::TestWithParam<std::string> {};

TEST_P(GroupedModel, GivesTheBitsOfOneEngine) {
  const EngineOptions options{.backend = "cpu", .threads = 1, .prefill_chunk = 64};
  const auto alone = load_model(GetParam(), options);
  const std::int64_t layers = alone->summary().layers;
  const std::int64_t half = layers / 2;
  const std::int64_t experts = std::max(experts_in(*alone, 0, half), experts_in(*alone, half, layers));
  if (experts == 0)
    return expect_error(ErrorKind::input, {"layers 0 to ", "have no experts that 2 nodes could share"}, [&] {
      with_nodes(4, GetParam(), options, {.layers = "groups:2,2"}, [](Engine&) {});
    });
  // One node holds layers without experts, two share those with experts.
  int nodes = 0;
  const auto stage = [&](std::int64_t first, std::int64_t end) {
    const bool shared = experts_in(*alone, first, end) > 0;
    nodes += shared ? 2 : 1;
    return shared ? fmt::format("{}:1+{}", end - first, experts - 1) : fmt::format("{}", end - first);
  };
  const std::string layout = fmt::format("{},{}", stage(0, half), stage(half, layers));
  expect_bits_in_groups(GetParam(), options, nodes, layout);
}

TEST(GroupedModels, RefuseAGroupWithoutExperts) {
  expect_error(ErrorKind::input, {"layers 0 to 0 have no experts that 2 nodes could share"},
               [] { with_nodes(4, "deepseek_v3", kOneThread, {.layers = "1:4+4,2:4+4"}, [](Engine&) {}); });
}

INSTANTIATE_TEST_SUITE_P(Tiny, GroupedModel, ::testing::ValuesIn(golden_model_names()), golden_test_name);
INSTANTIATE_TEST_SUITE_P(Bundled, GroupedModel, ::testing::Values("delta-story", "latent-story"),
                         golden_test_name);

TEST(GroupedModels, StreamTheirPart) {
  const EngineOptions options{.backend = "cpu", .threads = 1, .prefill_chunk = 64, .expert_slots = 2};
  expect_bits_in_groups("delta-story", options, 3, "groups:1,2");
}

TEST(GroupedModels, RunManySequences) {
  with_nodes(4, "delta-story", kOneThread, {.layers = "groups:2,2"}, [&](Engine& engine) {
    expect_as_alone(engine, "delta-story", {.parallel = 4, .context = 256}, 8, story_request);
  });
}

TEST(GroupedModels, AgreeBeforeTheyBegin) {
  const auto nothing = [](Engine&) {};
  expect_error(ErrorKind::input, {"'3:1+1,4'", "7 layers", "8"},
               [&] { with_nodes(3, "delta-story", kOneThread, {.layers = "3:1+1,4"}, nothing); });
  expect_error(ErrorKind::input, {"'4:1+1,4'", "2 experts"},
               [&] { with_nodes(3, "delta-story", kOneThread, {.layers = "4:1+1,4"}, nothing); });
}

}  // namespace
}  // namespace sluice
