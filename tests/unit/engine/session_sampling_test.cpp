// Sampling in a session: every setting, changed from token to token, gives the choice implied by the logits
// and the timeline.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "expect_error.h"
#include "printed_seed.h"
#include "sluice/session.h"
#include "source_dir.h"

namespace sluice {
namespace {

class SessionSampling : public ::testing::TestWithParam<std::string_view> {
 protected:
  std::unique_ptr<Session> begin(std::span<const std::int32_t> prompt) {
    auto session = engine_->new_session(128);
    session->extend(prompt);
    return session;
  }
  std::int64_t vocab() const { return engine_->summary().vocab; }

  std::shared_ptr<Engine> engine_ =
      Engine::load(test_data() + "/models/qwen3_5_moe", {.backend = std::string(GetParam()), .threads = 2});
  const std::vector<std::int32_t> prompt_{3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
};

// The choice of a greedy request with penalties and biases, by definition.
std::int32_t expected(const Session& session, const SamplingSettings& s) {
  const std::span<const float> logits = session.logits();
  std::vector<double> seen(logits.begin(), logits.end());
  std::map<std::int32_t, int> counts;
  const auto& past = session.tokens();
  const std::size_t window = s.penalty_window > 0 ? static_cast<std::size_t>(s.penalty_window) : past.size();
  for (std::size_t i = past.size() - std::min(window, past.size()); i < past.size(); ++i) ++counts[past[i]];
  for (const auto& [id, count] : counts) {
    double& logit = seen[static_cast<std::size_t>(id)];
    logit = logit > 0 ? logit / s.repetition_penalty : logit * s.repetition_penalty;
    logit -= s.presence_penalty + s.frequency_penalty * count;
  }
  for (const auto& [id, bias] : s.logit_bias) seen[static_cast<std::size_t>(id)] += bias;
  return static_cast<std::int32_t>(std::max_element(seen.begin(), seen.end()) - seen.begin());
}

TEST_P(SessionSampling, PenaltiesAndBiasesFollowTheTimeline) {
  const SamplingSettings table[] = {
      {.repetition_penalty = 1.5},
      {.presence_penalty = 0.5, .frequency_penalty = 0.25},
      {.repetition_penalty = 1.25, .frequency_penalty = 0.5, .penalty_window = 4},
      {.presence_penalty = -0.5, .penalty_window = 1},
      {.frequency_penalty = 0.5, .logit_bias = {{7, 0.25}, {8, 0.5}, {7, 0.25}}},
  };
  for (const SamplingSettings& settings : table) {
    const auto session = begin(prompt_);
    std::int32_t chosen = session->sample(settings, vocab()).id;
    for (int i = 0; i < 24; ++i) {
      ASSERT_EQ(chosen, expected(*session, settings)) << "after " << i;
      chosen = session->step_and_sample(settings, vocab()).id;
    }
  }
}

std::vector<std::uint8_t> mask_of(std::int64_t vocab, std::initializer_list<std::int32_t> allowed) {
  std::vector<std::uint8_t> bits(static_cast<std::size_t>((vocab + 7) / 8));
  for (const std::int32_t id : allowed)
    bits[static_cast<std::size_t>(id / 8)] |= static_cast<std::uint8_t>(1 << id % 8);
  return bits;
}

// Settings that change with every token: earlier settings have no effect.
TEST_P(SessionSampling, SettingsMayChangeWithEveryToken) {
  std::mt19937 random(printed_seed());
  const auto session = begin(prompt_);
  std::int32_t chosen = session->sample({}, vocab()).id;
  for (int i = 0; i < 40; ++i) {
    SamplingSettings settings;
    if (random() % 2 == 0) settings = {.temperature = 1.5, .top_k = 30, .top_p = 0.9, .seed = random()};
    if (random() % 3 == 0) settings.frequency_penalty = 0.5;
    if (random() % 4 == 0) settings.penalty_window = 3;
    if (random() % 3 == 0) settings.logit_bias = {{static_cast<std::int32_t>(random() % 20), 1.5}};
    if (random() % 3 == 0) settings.logprobs = static_cast<int>(random() % 21);
    SampledToken next;
    if (random() % 3 == 0) {  // manually, with a mask
      session->step(chosen);
      next = session->sample(settings, vocab(), mask_of(vocab(), {2, 11, 23, 42}));
      EXPECT_TRUE(next.id == 2 || next.id == 11 || next.id == 23 || next.id == 42);
    } else {
      next = session->step_and_sample(settings, vocab());
      // A new session that never had other settings.
      const auto fresh = engine_->new_session(128);
      fresh->extend(prompt_);
      for (std::size_t t = prompt_.size(); t < session->tokens().size(); ++t)
        fresh->step(session->tokens()[t]);
      const SampledToken alone = fresh->sample(settings, vocab());
      ASSERT_EQ(next.id, alone.id) << "token " << i;
      EXPECT_EQ(next.logprob, alone.logprob);
      ASSERT_EQ(next.top.size(), alone.top.size());
      EXPECT_EQ(next.top.size(), static_cast<std::size_t>(std::max(settings.logprobs, 0)));
      for (std::size_t k = 0; k < next.top.size(); ++k) {
        EXPECT_EQ(next.top[k].id, alone.top[k].id);
        EXPECT_EQ(next.top[k].logprob, alone.top[k].logprob);
      }
    }
    chosen = next.id;
  }
}

TEST_P(SessionSampling, LogprobsAreThoseOfTheLogits) {
  const auto session = begin(prompt_);
  const SampledToken token = session->sample({.temperature = 0.5, .top_k = 1, .logprobs = 5}, vocab());
  const std::span<const float> logits = session->logits();
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  ASSERT_EQ(token.top.size(), 5u);
  EXPECT_EQ(token.id, token.top[0].id);
  EXPECT_EQ(token.logprob, token.top[0].logprob);
  for (const TokenLogprob& one : token.top)
    EXPECT_NEAR(one.logprob, logits[static_cast<std::size_t>(one.id)] - std::log(sum), 2e-6);
  EXPECT_TRUE(session->sample({}, vocab()).top.empty());
}

TEST_P(SessionSampling, AMaskWithoutTokensIsRefusedAndTheSessionContinues) {
  const auto session = begin(prompt_);
  const std::int32_t free = session->sample({}, vocab()).id;
  expect_error(ErrorKind::input, {"mask", "allows no token"},
               [&] { session->sample({}, vocab(), mask_of(vocab(), {})); });
  expect_error(ErrorKind::input, {"mask", "bytes"},
               [&] { session->sample({}, vocab(), std::vector<std::uint8_t>(1, 255)); });
  expect_error(ErrorKind::input, {"no sampled token"}, [&] { session->step_and_sample({}, vocab()); });
  EXPECT_EQ(session->sample({}, vocab(), mask_of(vocab(), {17})).id, 17);
  EXPECT_EQ(session->sample({}, vocab()).id, free);
  expect_error(ErrorKind::input, {"top_p"}, [&] { session->step_and_sample({.top_p = 0}, vocab()); });
  EXPECT_EQ(session->length(), static_cast<std::int64_t>(prompt_.size()));
  session->step_and_sample({}, vocab());
}

// Sampling needs the logits of the last token, wherever they come from.
TEST_P(SessionSampling, RestoredAndPerTokenPromptsCanBeSampled) {
  const auto session = begin(prompt_);
  const std::int32_t first = session->sample({}, vocab()).id;
  const Snapshot point = session->snapshot();
  session->step_and_sample({}, vocab());
  session->restore(point);
  EXPECT_EQ(session->sample({}, vocab()).id, first);
  session->step_and_sample({}, vocab());
  session->rewind(point);
  EXPECT_EQ(session->sample({}, vocab()).id, first);
  const auto rows = engine_->new_session(128);
  rows->extend(prompt_, [](std::int64_t, std::span<const float>) {});
  EXPECT_EQ(rows->sample({}, vocab()).id, first);
}

TEST_P(SessionSampling, GenerateReportsAlternatives) {
  const auto session = engine_->new_session(128);
  GenerateOptions options;
  options.max_tokens = 6;
  options.ignore_stop_ids = true;
  options.logprobs = 3;
  options.sampling = {.temperature = 1, .presence_penalty = 0.5, .seed = 11};
  int tokens = 0;
  generate(*session, prompt_, options, [&](const GeneratedToken& token) {
    EXPECT_EQ(token.top.size(), 3u);
    EXPECT_LT(token.logprob, 0);
    EXPECT_LE(token.logprob, token.top[0].logprob);
    ++tokens;
    return true;
  });
  EXPECT_EQ(tokens, 6);
  options.logprobs = 21;
  expect_error(ErrorKind::input, {"logprobs", "21"}, [&] { generate(*session, {}, options); });
}

INSTANTIATE_TEST_SUITE_P(Backends, SessionSampling, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

TEST(SessionSamplingAtLength, MoreBiasesThanUsual) {
  const auto engine = Engine::load(source_dir() + "/models/delta-story", {.backend = "cpu", .threads = 2});
  const auto session = engine->new_session(32);
  session->extend(std::vector<std::int32_t>{1, 2, 3});
  SamplingSettings settings;
  for (std::int32_t id = 0; id < 1500; ++id) settings.logit_bias.emplace_back(id, id == 1234 ? 900.0 : 500.0);
  EXPECT_EQ(session->sample(settings, engine->summary().vocab).id, 1234);
  EXPECT_EQ(session->step_and_sample(settings, engine->summary().vocab).id, 1234);
}

}  // namespace
}  // namespace sluice
