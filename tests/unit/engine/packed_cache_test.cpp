// Sessions with packed caches: their memory, their rewinding, and their accuracy.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "engine/executor.h"
#include "expect_error.h"
#include "sluice/cache_quality.h"
#include "sluice/session.h"
#include "source_dir.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

struct Bits {
  int keys;
  int values;
};

std::shared_ptr<Engine> load(const std::string& story, const Bits& bits, std::int64_t chunk = 0,
                             const char* backend = "cpu") {
  return Engine::load(fs::path(source_dir() + "/models") / story, {.backend = backend,
                                                                   .threads = 2,
                                                                   .prefill_chunk = chunk,
                                                                   .key_bits = bits.keys,
                                                                   .value_bits = bits.values});
}

std::vector<std::int32_t> some_tokens(std::size_t count) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<std::int32_t>(i * 2654435761 % 4000));
  return tokens;
}

std::vector<float> copy(std::span<const float> logits) {
  return {logits.begin(), logits.end()};
}

double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

class PackedCache : public ::testing::TestWithParam<std::tuple<std::string, Bits>> {};

TEST_P(PackedCache, HoldsCodesAtTheirWidthAndANormARow) {
  const auto [name, bits] = GetParam();
  const auto engine = load(name, bits);
  // Both models have rows of 256: two layers with two KV heads, or eight layers with a latent and 64 rotary
  // coordinates in BF16.
  const auto row = [](int each) { return 256 * each / 8 + 4; };
  const int expected =
      name == "delta-story" ? 2 * 2 * (row(bits.keys) + row(bits.values)) : 8 * (row(bits.keys) + 2 * 64);
  EXPECT_EQ(engine->summary().cache_bytes_per_position, static_cast<std::size_t>(expected));
  const auto session = engine->new_session(600);
  session->extend(some_tokens(257));
  EXPECT_EQ(session->bytes(), engine->session_bytes(512));
  EXPECT_EQ(session->bytes() - engine->session_bytes(256), 256 * static_cast<std::size_t>(expected));
}

TEST_P(PackedCache, SnapshotsAndMarksGiveTheSameBits) {
  const auto engine = load(std::get<0>(GetParam()), std::get<1>(GetParam()));
  const std::vector<std::int32_t> tokens = some_tokens(90);
  const auto steps = [&](Session& session, std::size_t from) {
    for (std::size_t i = from; i < tokens.size(); ++i) session.step(tokens[i]);
    return copy(session.logits());
  };
  const auto session = engine->new_session(96);
  session->extend(std::span(tokens).first(60));
  session->step(tokens[60]);
  const Snapshot snapshot = session->snapshot();
  const Snapshot mark = session->mark();
  EXPECT_GT(snapshot.bytes(), mark.bytes());
  const std::vector<float> want = steps(*session, 61);
  session->rewind(mark);
  EXPECT_EQ(steps(*session, 61), want) << "after a rewind";
  const auto other = engine->new_session(200);  // its rows are in other pages
  other->extend(some_tokens(120));
  other->restore(snapshot);
  EXPECT_EQ(other->length(), 61);
  EXPECT_EQ(steps(*other, 61), want) << "after a restore";
}

// A prompt sees its own chunk unquantised: one chunk loses nothing, two lose something.
TEST_P(PackedCache, PromptsSeeTheirOwnChunkAsItIs) {
  const auto [name, bits] = GetParam();
  const std::vector<std::int32_t> tokens = some_tokens(64);
  const auto logits = [&, story = name](const Bits& cache, std::int64_t chunk) {
    const auto session = load(story, cache, chunk)->new_session(64);
    session->extend(tokens);
    return copy(session->logits());
  };
  const std::vector<float> exact = logits({16, 16}, 0);
  EXPECT_LT(relative_difference(logits(bits, 0), exact), name == "delta-story" ? 1e-4 : 1e-2);
  const double lost = relative_difference(logits(bits, 32), exact);
  EXPECT_GT(lost, 2e-5);
  EXPECT_LT(lost, bits.keys <= 3 || bits.values <= 3 ? 0.7 : 0.2);
}

// Generated tokens read only the cache, so the results match the reference's.
TEST_P(PackedCache, AgreesWithTheReference) {
  const auto [name, bits] = GetParam();
  const std::vector<std::int32_t> tokens = some_tokens(12);
  const auto logits = [&, story = name, cache = bits](const char* backend) {
    const auto session = load(story, cache, 8, backend)->new_session(16);
    session->extend(std::span(tokens).first(10));
    for (std::size_t i = 10; i < tokens.size(); ++i) session->step(tokens[i]);
    return copy(session->logits());
  };
  // After the rounding of earlier layers, a value near a boundary may get another code.
  EXPECT_LT(relative_difference(logits("cpu"), logits("reference")), 0.02);
}

TEST_P(PackedCache, ReplayEqualsSteps) {
  const auto engine = load(std::get<0>(GetParam()), std::get<1>(GetParam()));
  const std::vector<std::int32_t> tokens = some_tokens(40);
  const auto stepped = engine->new_session(40);
  for (const std::int32_t token : tokens) stepped->step(token);
  engine::Executor& executor = *engine::core(*engine).executor;
  const auto group = executor.reserve({1, 40});
  std::vector<float> replayed;
  executor.run([&] {
    group->pass.run({ops::Phase::prefill, {{0, 0, tokens, 1}}, true});
    group->pass.read_logits(replayed);
  });
  EXPECT_EQ(replayed, copy(stepped->logits()));
}

INSTANTIATE_TEST_SUITE_P(Models, PackedCache,
                         ::testing::Combine(::testing::Values("delta-story", "latent-story"),
                                            ::testing::Values(Bits{2, 2}, Bits{3, 3}, Bits{4, 4}, Bits{5, 5},
                                                              Bits{6, 6}, Bits{8, 8}, Bits{8, 4},
                                                              Bits{8, 16})),
                         [](const auto& info) {
                           const Bits bits = std::get<1>(info.param);
                           return std::get<0>(info.param).substr(0, 5) + "_" + std::to_string(bits.keys) +
                                  "_" + std::to_string(bits.values);
                         });

TEST(PackedCacheOptions, AreChecked) {
  const fs::path story = source_dir() + "/models/delta-story";
  expect_error(ErrorKind::input, {"values", "7 bits", "2, 3, 4, 5, 6, 8 or 16"},
               [&] { Engine::load(story, {.backend = "cpu", .value_bits = 7}); });
  expect_error(ErrorKind::input, {"F32"},
               [&] { Engine::load(story, {.backend = "cpu", .cache = CacheType::f32, .key_bits = 4}); });
  expect_error(ErrorKind::unsupported, {"power of two", "24", "bf16"}, [&] {
    Engine::load(test_data() + "/models/qwen3_5-irregular", {.backend = "cpu", .key_bits = 4});
  });
}

TEST(CacheQuality, FallsWithTheBits) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "Once upon a time, there was a little dog named Max. He had a red ball " + std::to_string(i) +
            " and loved to play.\n<|endoftext|>\n";
  const auto exact = load("latent-story", {16, 16});
  const auto compare = [&](int bits) {
    return compare_caches(*load("latent-story", {bits, bits}), *exact, text, 128, 2);
  };
  const CacheQuality two = compare(2);
  const CacheQuality eight = compare(8);
  EXPECT_EQ(two.tokens, 2 * 127);
  EXPECT_LT(eight.divergence, 1e-3);
  EXPECT_GT(eight.divergence, 0);
  EXPECT_GT(two.divergence, 20 * eight.divergence);
  EXPECT_GE(eight.agreement, two.agreement);
  EXPECT_EQ(compare(16).divergence, 0);
  expect_error(ErrorKind::input, {"less than one context"},
               [&] { compare_caches(*exact, *exact, "Once.", 128, 0); });
}

}  // namespace
}  // namespace sluice
