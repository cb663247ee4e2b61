// Batches of any sequences: the results of a sequence do not depend on the others.
#include "engine/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "expect_error.h"
#include "model_case.h"
#include "sluice/session.h"

namespace sluice::engine {
namespace {

class Batches : public ::testing::TestWithParam<ModelCase> {
 protected:
  static constexpr std::int64_t kSlots = 5;
  static constexpr std::int64_t kCapacity = 400;

  void SetUp() override {
    SLUICE_NEED_DEVICE_OF(GetParam());
    engine_ = GetParam().load(1024);
    executor_ = core(*engine_).executor.get();
    random_.seed(11);
  }

  std::vector<std::int32_t> some_tokens(std::int64_t count) {
    std::vector<std::int32_t> tokens;
    for (std::int64_t i = 0; i < count; ++i)
      tokens.push_back(
          static_cast<std::int32_t>(random_() % static_cast<unsigned>(core(*engine_).summary.vocab)));
    return tokens;
  }
  void expect_bits_as_alone(const state::Extent& extent);
  static std::vector<float> copy(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

  std::shared_ptr<Engine> engine_;
  Executor* executor_ = nullptr;
  std::mt19937 random_;
};

// Prompts of several sequences in one pass, then steps of random subsets in random order.
void Batches::expect_bits_as_alone(const state::Extent& extent) {
  // Every sequence alone, in a session: the logits after its prompt, and after each step.
  const std::int64_t lengths[kSlots] = {1, 254, 17, 64, 300};
  constexpr std::int64_t kSteps = 6;
  std::vector<std::vector<std::int32_t>> tokens;
  std::vector<std::vector<std::vector<float>>> want;
  for (const std::int64_t length : lengths) {
    tokens.push_back(some_tokens(length + kSteps));
    const auto session = engine_->new_session(kCapacity);
    session->extend(std::span(tokens.back()).first(static_cast<std::size_t>(length)));
    want.push_back({copy(session->logits())});
    for (std::int64_t i = 0; i < kSteps; ++i) {
      session->step(tokens.back()[static_cast<std::size_t>(length + i)]);
      want.back().push_back(copy(session->logits()));
    }
  }
  const auto group = executor_->reserve(extent);
  std::vector<Executor::Slot> slots;
  for (std::int64_t i = 0; i < kSlots; ++i) slots.push_back(executor_->open(group));
  std::vector<Executor::SlotTokens> prompts;
  std::vector<std::size_t> order{3, 0, 4, 1, 2};
  for (const std::size_t s : order)
    prompts.push_back({&slots[s], 0, std::span(tokens[s]).first(static_cast<std::size_t>(lengths[s]))});
  std::vector<std::size_t> done(kSlots);
  executor_->prefill(prompts, [&](std::size_t i, std::span<const float> logits) {
    EXPECT_EQ(copy(logits), want[order[i]][0]) << "sequence " << order[i] << " behind its prompt";
  });
  for (int turn = 0; turn < 20; ++turn) {
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<Executor::SlotTokens> step;
    std::vector<std::size_t> members;
    for (const std::size_t s : std::span(order).first(1 + random_() % kSlots)) {
      if (done[s] == kSteps) continue;
      const std::size_t at = static_cast<std::size_t>(lengths[s]) + done[s];
      step.push_back({&slots[s], static_cast<std::int64_t>(at), std::span(tokens[s]).subspan(at, 1)});
      members.push_back(s);
    }
    executor_->decode(step, [&](std::size_t i, std::span<const float> logits) {
      const std::size_t s = members[i];
      EXPECT_EQ(copy(logits), want[s][++done[s]]) << "sequence " << s << " behind step " << done[s];
    });
  }
}

TEST_P(Batches, GiveEachSequenceTheBitsOfItAlone) {
  expect_bits_as_alone({kSlots, kCapacity});
}

TEST_P(Batches, GiveTheSameBitsWithFewPages) {
  expect_bits_as_alone({kSlots, kCapacity, 8});
}

// Two sequences continue from one prompt, which is stored once.
TEST_P(Batches, ForksContinueAsIfTheyHadReadThePrompt) {
  const std::vector<std::int32_t> prompt = some_tokens(300);
  const std::vector<std::int32_t> tails[] = {some_tokens(4), some_tokens(4)};
  std::vector<std::vector<float>> want;
  for (const auto& tail : tails) {
    const auto session = engine_->new_session(kCapacity);
    session->extend(prompt);
    for (const std::int32_t id : tail) session->step(id);
    want.push_back(copy(session->logits()));
  }
  const auto group = executor_->reserve({2, kCapacity, 3});
  const Executor::Slot slots[] = {executor_->open(group), executor_->open(group)};
  const Executor::SlotTokens read{&slots[0], 0, prompt};
  executor_->prefill(std::span(&read, 1), [](std::size_t, std::span<const float>) {});
  executor_->fork(slots[0], slots[1], 300);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto past = static_cast<std::int64_t>(300 + i);
    const Executor::SlotTokens step[] = {{&slots[0], past, std::span(tails[0]).subspan(i, 1)},
                                         {&slots[1], past, std::span(tails[1]).subspan(i, 1)}};
    executor_->decode(step, [&](std::size_t s, std::span<const float> logits) {
      if (i == 3) {
        EXPECT_EQ(copy(logits), want[s]) << "fork " << s;
      }
    });
  }
}

TEST_P(Batches, SampleEachSequenceAsItDoesAlone) {
  const SamplingSettings settings{.temperature = 0.9, .seed = 5};
  const std::int64_t vocab = core(*engine_).summary.vocab;
  constexpr int kSteps = 5;
  std::vector<std::vector<std::int32_t>> prompts;
  std::vector<std::vector<std::int32_t>> want;
  for (std::int64_t i = 0; i < kSlots; ++i) {
    prompts.push_back(some_tokens(10 + 7 * i));
    const auto session = engine_->new_session(kCapacity);
    session->extend(prompts.back());
    want.push_back({session->sample(settings, vocab).id});
    for (int n = 0; n < kSteps; ++n) want.back().push_back(session->step_and_sample(settings, vocab).id);
  }
  const auto group = executor_->reserve({kSlots, kCapacity});
  executor_->run([&] {
    Batch batch;
    std::vector<ForwardPass::Next> next;
    for (std::int32_t slot = 0; slot < kSlots; ++slot) {
      const auto& prompt = prompts[static_cast<std::size_t>(slot)];
      batch.sequences.push_back({slot, 0, prompt, 1});
      next.push_back({slot, static_cast<std::int32_t>(prompt.size()) - 1, prompt.back()});
    }
    group->pass.run(batch);
    const std::vector<SampleRequest> requests(next.size(), {settings});
    std::vector<SampledToken> chosen = group->pass.sample(next, requests, vocab);
    for (std::size_t n = 0;; ++n) {
      for (std::size_t i = 0; i < next.size(); ++i) {
        EXPECT_EQ(chosen[i].id, want[static_cast<std::size_t>(next[i].slot)][n]) << "step " << n;
        next[i].id = chosen[i].id;
        ++next[i].position;
      }
      if (n == kSteps) break;
      if (n == 2) std::swap(next[0], next[3]);  // changes slots, so that inputs must be written again
      chosen = group->pass.step_and_sample(next, requests, vocab);
    }
  });
}

TEST_P(Batches, SlotsAreGivenBackEmpty) {
  const std::vector<std::int32_t> tokens = some_tokens(20);
  const auto group = executor_->reserve({2, 64});
  std::vector<float> want;
  const auto read = [&](const Executor::Slot& slot) {
    std::vector<float> logits;
    const Executor::SlotTokens prompt{&slot, 0, tokens};
    executor_->prefill(std::span(&prompt, 1), [&](std::size_t, auto row) { logits = copy(row); });
    return logits;
  };
  {
    const Executor::Slot slot = executor_->open(group);
    want = read(slot);
  }
  const Executor::Slot first = executor_->open(group);
  const Executor::Slot second = executor_->open(group);
  expect_error(ErrorKind::busy, {"2 slots"}, [&] { executor_->open(group); });
  EXPECT_EQ(read(first), want);
  EXPECT_EQ(read(second), want);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Batches,
    ::testing::Values(ModelCase{"cpu", "qwen3_5"}, ModelCase{"cpu", "mlx-qwen3_5_moe-4bit"},
                      ModelCase{"cpu", "qwen3_moe"}, ModelCase{"cpu", "qwen3_next"},
                      ModelCase{"cpu", "deepseek_v3"}, ModelCase{"cpu", "delta-story", 4},
                      ModelCase{"cpu", "latent-story", 4}, ModelCase{"reference", "qwen3_5_moe"},
                      ModelCase{"cuda", "mlx-qwen3_5_moe-4bit"}, ModelCase{"cuda", "deepseek_v3"},
                      ModelCase{"cuda", "delta-story", 4}),
    model_case_name<ModelCase>);

TEST(Executor, JobsThrowToTheirCallersAndLaterOnesRun) {
  JobThread thread;
  EXPECT_EQ(thread.run([] { return 3; }), 3);
  expect_error(ErrorKind::input, {"no"},
               [&] { thread.run([]() -> int { throw Error(ErrorKind::input, "no"); }); });
  EXPECT_EQ(thread.run([&] { return thread.run([] { return 4; }); }), 4) << "a job inside a job";
}

}  // namespace
}  // namespace sluice::engine
