// A model whose layers several nodes hold gives the bits of one that a single engine holds.
#include <gtest/gtest.h>

#include "expect_error.h"
#include "golden_model.h"
#include "load_model.h"
#include "local_nodes.h"
#include "sluice/experts.h"
#include "sluice/nodes.h"
#include "sluice/scheduler.h"

namespace sluice {
namespace {

using nodes::Cluster;
using nodes::Hub;

// Loads the model on so many nodes and calls `use` with the engine of the one that leads.
void with_nodes(int count, const std::string& model, const EngineOptions& options,
                const NodesOptions& settings, const std::function<void(Engine&)>& use,
                const std::function<void(int rank, EngineOptions&)>& change = {}) {
  Hub hub(count);
  nodes::on_each_node(count, [&](int rank) {
    const auto cluster = std::make_shared<Cluster>(std::make_unique<nodes::LocalTransport>(hub, rank),
                                                   Cluster::Options{.patience = std::chrono::seconds(60)});
    Nodes nodes(cluster, settings);
    EngineOptions own = options;
    if (change) change(rank, own);
    try {
      own.share = nodes.share();
      const auto engine = load_model(model, own);
      own.share = nullptr;
      rank == 0 ? use(*engine) : nodes.follow(*engine);
    } catch (const std::exception& error) {
      own.share = nullptr;
      nodes.give_up(error.what());
      throw;
    }
  });
}

void append(std::vector<float>& all, std::span<const float> row) {
  all.insert(all.end(), row.begin(), row.end());
}

// Everything that a session does, as logits: prompts in chunks, steps, samples, saved and rewound pasts.
std::vector<float> transcript(Engine& engine, std::span<const std::int32_t> tokens) {
  const std::int64_t vocab = engine.summary().vocab;
  const auto session = engine.new_session(static_cast<std::int64_t>(tokens.size()) + 32);
  std::vector<float> all;
  const std::size_t half = tokens.size() / 2;
  session->extend(tokens.first(half), [&](std::int64_t, std::span<const float> row) { append(all, row); });
  const Snapshot mark = session->mark();
  session->extend(tokens.subspan(half));
  append(all, session->logits());
  for (int i = 0; i < 4; ++i) {
    session->step(sampling::argmax(session->logits()));
    append(all, session->logits());
  }
  const Snapshot snapshot = session->snapshot();
  all.push_back(static_cast<float>(session->sample({.temperature = 0.8, .seed = 5}, vocab).id));
  for (int i = 0; i < 4; ++i)
    all.push_back(static_cast<float>(session->step_and_sample({.temperature = 0.8, .seed = 5}, vocab).id));
  session->rewind(mark);
  session->step(3);
  append(all, session->logits());
  const auto other = engine.new_session(static_cast<std::int64_t>(tokens.size()) + 8);
  other->restore(snapshot);
  other->step(1);
  append(all, other->logits());
  other->reset();
  other->extend(tokens.first(3));
  append(all, other->logits());
  return all;
}

std::vector<std::int32_t> some_tokens(std::size_t count) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>((i * i * 7 + 3 * i) % 90));
  return tokens;
}

void expect_same_bits(const std::string& model, const EngineOptions& options, std::size_t tokens,
                      int most = 4) {
  const std::vector<std::int32_t> ids = some_tokens(tokens);
  const auto alone = load_model(model, options);
  const std::vector<float> want = transcript(*alone, ids);
  for (int count = 2; count <= std::min<std::int64_t>(most, alone->summary().layers); ++count) {
    std::vector<float> got;
    with_nodes(count, model, options, {}, [&](Engine& engine) { got = transcript(engine, ids); });
    EXPECT_EQ(got.size(), want.size());
    EXPECT_TRUE(got == want) << model << " on " << count << " nodes";
  }
}

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

TEST(SharedModels, HoldLayersAsAsked) {
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
    Request request;
    request.prompt = engine.encode(i % 2 == 0 ? "Once upon a time" : "There was a little cat who");
    const std::vector<std::int32_t> words = request.prompt;
    for (std::size_t more = 0; more < i * 5; ++more) request.prompt.push_back(words[more % words.size()]);
    request.options.max_tokens = 12;
    request.options.ignore_stop_ids = true;
    request.options.sampling = {.temperature = i % 3 == 0 ? 0.0 : 0.7, .seed = i};
    return request;
  };
  const EngineOptions options{.backend = "cpu", .threads = 1};
  const auto alone = load_model("delta-story", options);
  with_nodes(2, "delta-story", options, {}, [&](Engine& engine) {
    // Few pages, so that sequences make room for each other; and prompts that begin alike.
    Scheduler scheduler(engine.shared_from_this(), {.parallel = 6, .context = 256, .cache_tokens = 1024});
    std::vector<std::vector<std::int32_t>> got(kSequences);
    for (std::size_t i = 0; i < kSequences; ++i)
      scheduler.submit(story(engine, i), {.done = [&got, i](const RequestResult& result) {
                         EXPECT_FALSE(result.error);
                         got[i] = result.generated.ids;
                       }});
    scheduler.drain();
    for (std::size_t i = 0; i < kSequences; ++i) {
      const Request request = story(*alone, i);
      EXPECT_EQ(got[i], generate(*alone->new_session(256), request.prompt, request.options).ids) << i;
    }
  });
}

TEST(SharedModels, AgreeBeforeTheyBegin) {
  const EngineOptions options{.backend = "cpu", .threads = 1};
  const auto nothing = [](Engine&) {};
  const auto expect = [&](std::initializer_list<std::string_view> parts, auto&& change) {
    expect_error(ErrorKind::input, parts,
                 [&] { with_nodes(2, "delta-story", options, {}, nothing, change); });
  };
  expect({"the cache's bits differs", "node 0 (machine0) has 16,16", "node 1 (machine1) has 4,4"},
         [](int rank, EngineOptions& own) { own.key_bits = own.value_bits = rank == 1 ? 4 : 16; });
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
