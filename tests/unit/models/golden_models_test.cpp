// Complete models compared with their original implementations, transformers and mlx-lm
// (tests/data/models/README.md).
#include <gtest/gtest.h>

#include <algorithm>

#include "golden_model.h"

namespace sluice {
namespace {

class GoldenModel : public GoldenModelTest {};

TEST_P(GoldenModel, LogitsAndGreedyTextMatchTheOracle) {
  const auto engine = Engine::load(folder(), {.backend = "cpu", .threads = 2, .exact = true});
  const GoldenRun run = golden_run(*engine);
  EXPECT_LT(run.logits_error, 2e-5);  // the oracles themselves match to 1e-5
  EXPECT_EQ(run.chosen, run.greedy);
}

TEST_P(GoldenModel, RoundedActivationsStayNearTheOracle) {
  const auto engine = Engine::load(folder(), {.backend = "cpu", .threads = 2});
  EXPECT_LT(golden_run(*engine).logits_error, 5e-3);
}

// All operations on a timeline must lead to the same state.
void expect_one_timeline(Engine& engine, std::span<const std::int32_t> tokens, double rounding) {
  const auto capacity = static_cast<std::int64_t>(tokens.size()) + 8;
  const auto whole = engine.new_session(capacity);
  whole->extend(tokens);
  const std::vector<float> want(whole->logits().begin(), whole->logits().end());

  // Divisions at multiples of 64 keep the chunk boundaries: the same bits.
  const auto aligned = engine.new_session(capacity);
  aligned->extend(tokens.first(128));
  const Snapshot middle = aligned->snapshot();
  const Snapshot mark = aligned->mark();
  aligned->extend(tokens.subspan(128));
  EXPECT_TRUE(std::ranges::equal(want, aligned->logits()));

  // Another session, restored to the middle after other operations.
  const auto restored = engine.new_session(capacity);
  restored->extend(tokens.last(70));
  restored->restore(middle);
  EXPECT_EQ(restored->length(), 128);
  restored->extend(tokens.subspan(128));
  EXPECT_TRUE(std::ranges::equal(want, restored->logits()));

  aligned->rewind(mark);
  aligned->extend(tokens.subspan(128));
  EXPECT_TRUE(std::ranges::equal(want, aligned->logits()));

  // One token at a time, and uneven chunks: the delta rule's two forms differ by rounding.
  const auto stepped = engine.new_session(capacity);
  stepped->extend(tokens.first(tokens.size() - 3));
  for (std::size_t i = tokens.size() - 3; i < tokens.size(); ++i) stepped->extend(tokens.subspan(i, 1));
  EXPECT_LT(relative_difference(stepped->logits(), want), rounding);
  const auto ragged = engine.new_session(capacity);
  for (std::size_t at = 0; at < tokens.size(); at += 37)
    ragged->extend(tokens.subspan(at, std::min<std::size_t>(37, tokens.size() - at)));
  EXPECT_LT(relative_difference(ragged->logits(), want), rounding);
}

TEST_P(GoldenModel, ChunksStepsSnapshotsAndRewindsAgree) {
  for (const bool exact : {true, false}) {
    SCOPED_TRACE(exact ? "exact" : "rounded");
    const auto engine =
        Engine::load(folder(), {.backend = "cpu", .threads = 2, .prefill_chunk = 64, .exact = exact});
    expect_one_timeline(*engine, golden_tokens(), exact ? 1e-4 : 5e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenModel, ::testing::ValuesIn(golden_model_names()), golden_test_name);

}  // namespace
}  // namespace sluice
