// Requests in slots: a choice depends only on its own request, whatever was set before, in this slot or in
// others.
#include "engine/sample_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "expect_error.h"
#include "printed_seed.h"

namespace sluice::engine {
namespace {

using ops::DType;
using ops::View;

constexpr std::int64_t kSlots = 4;
constexpr std::int64_t kVocab = 1200;
const SamplingSettings kGreedy;

class SampleSlotsTest : public ::testing::Test {
 protected:
  // Samples in the given slots, from the same logits in every row.
  std::vector<SampledToken> choose(const std::vector<std::int32_t>& slots) {
    std::vector<float> rows;
    std::vector<std::int32_t> positions(slots.size(), 6);
    std::vector<std::int32_t> ids(slots.size(), -1);
    for (std::size_t i = 0; i < slots.size(); ++i) rows.insert(rows.end(), logits_.begin(), logits_.end());
    const auto count = static_cast<std::int64_t>(slots.size());
    const std::vector<std::int64_t> wide(slots.begin(), slots.end());
    const View chosen(ids.data(), DType::i32, {count});
    backend_->run(samplers_.op(
        {View(rows.data(), DType::f32, {count, kVocab}), View(positions.data(), DType::i32, {count}), chosen,
         ops::ConstView(slots.data(), DType::i32, {count})},
        kVocab, samplers_.plain(wide)));
    return samplers_.read(chosen, wide);
  }
  std::int32_t choose_one(std::int32_t slot) { return choose({slot})[0].id; }

  // By definition: the most likely token under a frequency penalty on the past, without the excluded ones.
  std::int32_t expected(std::span<const std::int32_t> past, double frequency,
                        std::span<const std::int32_t> banned = {}) const {
    std::vector<double> seen(logits_.begin(), logits_.end());
    for (const std::int32_t id : past) seen[static_cast<std::size_t>(id)] -= frequency;
    for (const std::int32_t id : banned) seen[static_cast<std::size_t>(id)] = -1e9;
    return static_cast<std::int32_t>(std::max_element(seen.begin(), seen.end()) - seen.begin());
  }

  std::vector<float> random_logits() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, 2);
    std::vector<float> logits(kVocab);
    for (float& logit : logits) logit = normal(random);
    return logits;
  }
  std::unique_ptr<ops::Backend> backend_ = ops::make_backend("reference");
  SampleSlots samplers_{*backend_, kSlots, kVocab};
  std::vector<float> logits_ = random_logits();
};

TEST_F(SampleSlotsTest, CountsFollowWhatIsChosen) {
  const SamplingSettings settings{.frequency_penalty = 0.5};
  for (const int window : {0, 3}) {
    SamplingSettings windowed = settings;
    windowed.penalty_window = window;
    std::vector<std::int32_t> past{5, 9, 5};
    for (int i = 0; i < 30; ++i) {
      samplers_.set(2, {windowed, past, {}, i > 0}, kVocab);
      const std::size_t counted = window == 0 ? past.size() : std::min<std::size_t>(past.size(), 3);
      const std::int32_t want = expected(std::span(past).last(counted), 0.5);
      ASSERT_EQ(choose_one(2), want) << "window " << window << ", token " << i;
      past.push_back(want);
    }
  }
}

// The past is replaced between two choices, as by a step outside of the sampler's control.
TEST_F(SampleSlotsTest, CountsAreThoseOfThePastThatIsGiven) {
  std::mt19937 random(printed_seed());
  const SamplingSettings settings{.frequency_penalty = 0.5};
  for (int i = 0; i < 40; ++i) {
    std::vector<std::int32_t> past;
    const std::int32_t best = expected({}, 0);
    for (std::size_t n = random() % 60; n > 0; --n)
      past.push_back(random() % 3 == 0 ? best : static_cast<std::int32_t>(random() % kVocab));
    samplers_.set(1, {settings, past}, kVocab);
    ASSERT_EQ(choose_one(1), expected(past, 0.5)) << i;
    if (random() % 4 == 0) {
      samplers_.set(1, {kGreedy, past}, kVocab);  // for a while nothing is counted
      ASSERT_EQ(choose_one(1), best);
    }
  }
}

TEST_F(SampleSlotsTest, BiasesAndMasksLeaveWithTheirRequest) {
  const std::int32_t best = expected({}, 0);
  std::vector<std::uint8_t> only((kVocab + 7) / 8);
  only[100] = 0x10;  // token 804
  const SamplingSettings biased{.logit_bias = {{17, 50.0}, {18, 20.0}, {18, 40.0}}};
  samplers_.set(0, {biased}, kVocab);
  samplers_.set(1, {biased, {}, only}, kVocab);
  samplers_.set(2, {kGreedy}, kVocab);
  const auto chosen = choose({1, 2, 0});
  EXPECT_EQ(chosen[0].id, 804);
  EXPECT_EQ(chosen[1].id, best);
  EXPECT_EQ(chosen[2].id, 18);  // listed twice: both count
  samplers_.set(0, {kGreedy}, kVocab);
  samplers_.set(1, {biased}, kVocab);
  EXPECT_EQ(choose_one(0), best);
  EXPECT_EQ(choose_one(1), 18);
  EXPECT_EQ(samplers_.version(), 0);
}

TEST_F(SampleSlotsTest, ManyBiasesMakeRoomAndKeepTheOthers) {
  SamplingSettings few{.logit_bias = {{17, 50.0}}};
  SamplingSettings many;
  for (std::int32_t id = 0; id < kVocab; ++id) many.logit_bias.emplace_back(id, id == 700 ? 90.0 : -3.0);
  samplers_.set(3, {few}, kVocab);
  samplers_.set(0, {many}, kVocab);
  EXPECT_EQ(samplers_.version(), 1);
  EXPECT_GT(samplers_.grown_bytes(), 0u);
  const auto chosen = choose({0, 3});
  EXPECT_EQ(chosen[0].id, 700);
  EXPECT_EQ(chosen[1].id, 17);
}

TEST_F(SampleSlotsTest, LogprobsAreGivenOnRequestOnly) {
  const SamplingSettings asks{.logprobs = 4};
  samplers_.set(0, {asks}, kVocab);
  samplers_.set(1, {kGreedy}, kVocab);
  EXPECT_FALSE(samplers_.plain(std::vector<std::int64_t>{1, 0}));
  EXPECT_TRUE(samplers_.plain(std::vector<std::int64_t>{1}));
  const auto chosen = choose({1, 0});
  EXPECT_TRUE(chosen[0].top.empty());
  ASSERT_EQ(chosen[1].top.size(), 4u);
  EXPECT_EQ(chosen[1].top[0].id, chosen[1].id);
  EXPECT_EQ(chosen[1].logprob, chosen[1].top[0].logprob);
}

TEST_F(SampleSlotsTest, TakesTheMemoryThatItSays) {
  const std::unique_ptr<ops::Backend> backend = ops::make_backend("reference");
  const SampleSlots samplers(*backend, 3, 1001);
  EXPECT_EQ(backend->allocated_bytes(), SampleSlots::bytes(3, 1001));
}

TEST_F(SampleSlotsTest, RefusesWhatCannotBe) {
  const SamplingSettings none_kept{.top_p = 0};
  expect_error(ErrorKind::input, {"top_p"}, [&] { samplers_.set(0, {none_kept}, kVocab); });
  const std::vector<std::uint8_t> none((kVocab + 7) / 8);
  expect_error(ErrorKind::input, {"allows no token"}, [&] { samplers_.set(0, {kGreedy, {}, none}, kVocab); });
}

}  // namespace
}  // namespace sluice::engine
