// One `sample` op over rows with different settings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "expect_error.h"
#include "printed_seed.h"
#include "request_rows.h"

namespace sluice::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const std::vector<float> kLogits = {1.0f, 3.0f, 2.0f, 3.0f, -1.0f};

class SampleRow : public ::testing::TestWithParam<std::string_view> {
 protected:
  std::int32_t choose(const SamplingSettings& settings, std::vector<std::int32_t> past = {},
                      std::vector<std::int32_t> allowed = {}) {
    return run_row(*backend_, {settings, kLogits, std::move(past), std::move(allowed)}).id;
  }
  std::unique_ptr<ops::Backend> backend_ = ops::make_backend(GetParam(), {.threads = 2});
};

TEST_P(SampleRow, GreedyTakesTheLowestOfEquals) {
  EXPECT_EQ(choose({}), 1);
}

TEST_P(SampleRow, PenaltiesLookAtThePast) {
  EXPECT_EQ(choose({.repetition_penalty = 2}, {1}), 3);
  EXPECT_EQ(choose({.presence_penalty = 1.5}, {1, 3}), 2);
  EXPECT_EQ(choose({.frequency_penalty = 0.6}, {1, 1, 3, 3}), 2);
  EXPECT_EQ(choose({.frequency_penalty = 0.6}, {1, 3}), 1);
  EXPECT_EQ(choose({.repetition_penalty = 0.5}, {2}), 2);  // below 1 it favours tokens that occurred
}

TEST_P(SampleRow, ChosenTokensCountWhereThereIsAPenalty) {
  EXPECT_EQ(run_row(*backend_, {{.presence_penalty = 0.1}, kLogits, {1, 1}}).counts,
            (std::vector<std::int32_t>{0, 2, 0, 1, 0}));
  EXPECT_EQ(run_row(*backend_, {{}, kLogits, {1, 1}}).counts, (std::vector<std::int32_t>{0, 2, 0, 0, 0}));
}

TEST_P(SampleRow, BiasComesAfterPenaltiesAndTheMaskAfterBias) {
  EXPECT_EQ(choose({.logit_bias = {{4, 10.0}}}), 4);
  // Penalised first, 1 has 3 / 3 + 1.5 = 2.5; biased first it would have 4.5 / 3 = 1.5 and lose to 2.
  EXPECT_EQ(choose({.repetition_penalty = 3, .logit_bias = {{1, 1.5}, {3, -9.0}}}, {1}), 1);
  EXPECT_EQ(choose({.logit_bias = {{4, 100.0}}}, {}, {0, 2}), 2);
}

TEST_P(SampleRow, NothingOutsideTheMaskIsChosen) {
  EXPECT_EQ(choose({}, {}, {4}), 4);
  EXPECT_EQ(choose({.temperature = 5, .seed = 3}, {}, {0}), 0);
  // Not even if all allowed tokens are impossible.
  const RowResult result = run_row(*backend_, {{}, {0.0f, -kInfinity, -kInfinity}, {}, {1, 2}});
  EXPECT_EQ(result.id, 1);
}

TEST_P(SampleRow, ARowWithoutAnyAllowedTokenIsAnError) {
  std::vector<std::uint8_t> none = {0xff, 0xe0};  // bits after the vocabulary allow nothing
  ops::Sample op;
  std::vector<float> logits(10);
  std::int32_t positions[2] = {};
  std::int32_t ids[2] = {-7, -7};
  op.logits = ops::ConstView(logits.data(), ops::DType::f32, {2, 5});
  op.positions = ops::View(positions, ops::DType::i32, {2});
  op.ids = ops::View(ids, ops::DType::i32, {2});
  op.allowed = ops::ConstView(none.data(), ops::DType::u8, {2, 1});
  expect_error(ErrorKind::input, {"sample", "'allowed'", "row 1"}, [&] { backend_->run(op); });
  EXPECT_EQ(ids[0], -7);
  EXPECT_EQ(positions[0], 0);
}

TEST_P(SampleRow, ARowLeftOutIsUnchanged) {
  std::vector<RowRequest> requests = {{{.logprobs = 3}, kLogits, {2}}};
  requests[0].logits[4] = std::numeric_limits<float>::quiet_NaN();
  const RowResult result = run_rows(*backend_, requests, {-1})[0];
  EXPECT_EQ(result.id, -7);
  EXPECT_EQ(result.position, 0);
  EXPECT_EQ(result.logprob, -kInfinity);
  EXPECT_EQ(result.top_ids[0], -1);
  EXPECT_EQ(result.top_logprobs[19], -kInfinity);
}

TEST_P(SampleRow, LogprobsAreOfWhatTheRequestSees) {
  // For any temperature and limits of the draw.
  for (const double temperature : {0.0, 0.3, 2.0}) {
    const RowResult result =
        run_row(*backend_, {{.temperature = temperature, .top_k = 1, .presence_penalty = 1, .logprobs = 2},
                            kLogits,
                            {1},
                            {0, 1, 2}});
    // The row sees 1, 2, 2, -inf, -inf.
    const double log_sum = std::log(std::exp(-1.0) + 2);
    ASSERT_EQ(result.id, 1);
    EXPECT_NEAR(result.logprob, -log_sum, 1e-6);
    EXPECT_EQ(result.top_ids[0], 1);
    EXPECT_EQ(result.top_ids[1], 2);
    EXPECT_EQ(result.top_ids[2], -1);
    EXPECT_NEAR(result.top_logprobs[1], -log_sum, 1e-6);
    EXPECT_EQ(result.top_logprobs[2], -kInfinity);
  }
}

TEST_P(SampleRow, SeedAndPositionDecideTheDraw) {
  const SamplingSettings settings{.temperature = 1, .seed = 7};
  EXPECT_EQ(choose(settings, {1, 2}), choose(settings, {2, 1}));
  int by_position = 0;
  int by_high_word = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const SamplingSettings one{.temperature = 1, .seed = seed};
    const SamplingSettings other{.temperature = 1, .seed = seed | std::uint64_t{1} << 40};
    by_position += choose(one, {0}) != choose(one) ? 1 : 0;
    by_high_word += choose(one) != choose(other) ? 1 : 0;
  }
  EXPECT_GT(by_position, 5);
  EXPECT_GT(by_high_word, 5);
}

RowRequest random_request(std::mt19937& random, std::size_t vocab) {
  std::normal_distribution<float> normal(0, 3);
  RowRequest request;
  request.logits.resize(vocab);
  for (float& logit : request.logits) logit = normal(random);
  SamplingSettings& s = request.settings;
  s.temperature = random() % 3 == 0 ? 0 : 0.2 + 0.1 * static_cast<double>(random() % 20);
  s.top_k = random() % 2 == 0 ? 0 : static_cast<int>(random() % (2 * vocab));
  s.top_p = random() % 2 == 0 ? 1 : 0.05 + 0.01 * static_cast<double>(random() % 95);
  s.min_p = random() % 2 == 0 ? 0 : 0.01 * static_cast<double>(random() % 50);
  s.repetition_penalty = random() % 2 == 0 ? 1 : 0.5 + 0.1 * static_cast<double>(random() % 15);
  s.presence_penalty = random() % 2 == 0 ? 0 : 0.1 * static_cast<double>(random() % 20) - 1;
  s.frequency_penalty = random() % 2 == 0 ? 0 : 0.1 * static_cast<double>(random() % 20) - 1;
  s.seed = random() | static_cast<std::uint64_t>(random()) << 32;
  s.logprobs = static_cast<int>(random() % 22) - 1;
  const auto token = [&] { return static_cast<std::int32_t>(random() % vocab); };
  for (std::size_t i = random() % 40; i > 0; --i) request.past.push_back(token());
  if (random() % 2 == 0) s.logit_bias = {{token(), 3.5}};
  if (random() % 2 == 0)
    for (std::size_t i = 1 + random() % vocab; i > 0; --i) request.allowed.push_back(token());
  return request;
}

// The promise: a row's result does not depend on the other rows, their number or their order.
TEST_P(SampleRow, AMixtureGivesEachRowWhatItGetsAlone) {
  std::mt19937 random(printed_seed());
  for (int round = 0; round < 40; ++round) {
    const std::size_t vocab = 1 + random() % 300;
    std::vector<RowRequest> requests;
    for (std::size_t i = 1 + random() % 9; i > 0; --i) requests.push_back(random_request(random, vocab));
    std::vector<std::int32_t> slots(requests.size());
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::int32_t>(i);
    std::shuffle(slots.begin(), slots.end(), random);
    const auto together = run_rows(*backend_, requests, slots);
    for (std::size_t t = 0; t < slots.size(); ++t) {
      const RowResult alone = run_row(*backend_, requests[static_cast<std::size_t>(slots[t])]);
      EXPECT_EQ(together[t].id, alone.id) << "round " << round << ", row " << t;
      EXPECT_EQ(together[t].position, alone.position);
      EXPECT_EQ(together[t].logprob, alone.logprob);
      EXPECT_EQ(together[t].top_ids, alone.top_ids);
      EXPECT_EQ(together[t].top_logprobs, alone.top_logprobs);
      EXPECT_EQ(together[t].counts, alone.counts);
    }
  }
}

// A field and an attribute of the same value are equivalent if F32 represents the value.
TEST_P(SampleRow, FieldsAndAttributesMeanTheSame) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const SamplingSettings s{.temperature = 0.75, .top_k = 4, .top_p = 0.875, .min_p = 0.125, .seed = seed};
    std::int32_t position = -1;
    std::int32_t id = -7;
    ops::Sample op;
    op.logits = ops::ConstView(kLogits.data(), ops::DType::f32, {1, 5});
    op.positions = ops::View(&position, ops::DType::i32, {1});
    op.ids = ops::View(&id, ops::DType::i32, {1});
    op.temperature = s.temperature;
    op.top_k = s.top_k;
    op.top_p = s.top_p;
    op.min_p = s.min_p;
    op.seed = s.seed;
    backend_->run(op);
    EXPECT_EQ(id, choose(s)) << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, SampleRow, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::sampling
