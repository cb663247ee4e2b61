// A model whose layers are on several nodes gives the bits of a single engine.
#include <gtest/gtest.h>

#include "expect_error.h"
#include "golden_model.h"
#include "shared_model.h"
#include "sluice/scheduler.h"

namespace sluice {
namespace {

class SharedModel : public ::testing::TestWithParam<std::string> {};

TEST_P(SharedModel, GivesTheBitsOfOneEngine) {
  expect_same_bits(GetParam(), {.backend = "cpu", .threads = 1, .prefill_chunk = 64}, 150);
}

INSTANTIATE_TEST_SUITE_P(Tiny, SharedModel, ::testing::ValuesIn(golden_model_names()), golden_test_name);
INSTANTIATE_TEST_SUITE_P(Bundled, SharedModel, ::testing::Values("delta-story", "latent-story"),
                         golden_test_name);

TEST(SharedModels, PackTheirCaches) {
  for (const char* model : {"delta-story", "latent-story"})
    expect_same_bits(
        model, {.backend = "cpu", .threads = 1, .prefill_chunk = 64, .key_bits = 4, .value_bits = 3}, 100, 2);
}

TEST(SharedModels, StreamTheirExperts) {
  for (const char* model : {"delta-story", "mlx-qwen3_5_moe-4bit"})
    expect_same_bits(model, {.backend = "cpu", .threads = 1, .prefill_chunk = 64, .expert_slots = 3}, 80, 3);
}

TEST(SharedModels, ComputeAsTheReferenceDoes) {
  expect_same_bits("qwen3_next", {.backend = "reference", .prefill_chunk = 16}, 40, 3);
}

TEST(SharedModels, HoldLayersAsRequested) {
  with_nodes(3, "delta-story", {.backend = "cpu", .threads = 1}, {.layers = "1,5,2"}, [](Engine& engine) {
    EXPECT_EQ(engine.summary().layers, 8);
    const auto alone = load_model("delta-story", {.backend = "cpu", .threads = 1});
    EXPECT_LT(engine.session_bytes(512), alone->session_bytes(512) / 2);
    EXPECT_TRUE(transcript(engine, some_tokens(40)) == transcript(*alone, some_tokens(40)));
  });
}

TEST(SharedModels, RunManySequences) {
  constexpr std::size_t kSequences = 16;
  const auto story = [](Engine& engine, std::size_t i) {
    Request request = story_request(engine, i);
    const std::vector<std::int32_t> words = request.prompt;
    for (std::size_t more = 0; more < i * 5; ++more) request.prompt.push_back(words[more % words.size()]);
    request.options.max_tokens = 12;
    return request;
  };
  with_nodes(2, "delta-story", kOneThread, {}, [&](Engine& engine) {
    // Few pages, so that sequences are suspended; and prompts with common prefixes.
    expect_as_alone(engine, "delta-story", {.parallel = 6, .context = 256, .cache_tokens = 1024}, kSequences,
                    story);
  });
}

TEST(SharedModels, AgreeBeforeTheyBegin) {
  const EngineOptions options{.backend = "cpu", .threads = 1};
  const auto nothing = [](Engine&) {};
  const auto expect = [&](std::initializer_list<std::string_view> parts, auto&& change) {
    expect_error(ErrorKind::input, parts,
                 [&] { with_nodes(2, "delta-story", options, {}, nothing, change); });
  };
  expect({"the number of cache bits differs", "node 0 (machine0) has 16,16", "node 1 (machine1) has 4,4"},
         [](int rank, EngineOptions& own) { own.key_bits = own.value_bits = rank == 1 ? 4 : 16; });
  expect({"the prefill chunk differs", "node 0 (machine0) has the default", "node 1 (machine1) has 64"},
         [](int rank, EngineOptions& own) { own.prefill_chunk = rank == 1 ? 64 : 0; });
  expect({"arithmetic differs", "machine1", "reference"},
         [](int rank, EngineOptions& own) { own.backend = rank == 1 ? "reference" : "cpu"; });
  expect_error(ErrorKind::input, {"'3,4'", "7 layers", "8"},
               [&] { with_nodes(2, "delta-story", options, {.layers = "3,4"}, nothing); });
  expect_error(ErrorKind::input, {"3 nodes", "2 layers"},
               [&] { with_nodes(3, "qwen3_moe", options, {}, nothing); });
}

TEST(SharedModels, SayWhichNodeCannotHoldItsPart) {
  const EngineOptions options{.backend = "cpu", .threads = 1};
  expect_error(ErrorKind::resource, {"node 1 (machine1)", "MB of memory are needed"}, [&] {
    with_nodes(
        2, "delta-story", options, {}, [](Engine& engine) { engine.new_session(2048); },
        [](int rank, EngineOptions& own) { own.memory = rank == 1 ? 1'000'000 : 0; });
  });
}

}  // namespace
}  // namespace sluice
