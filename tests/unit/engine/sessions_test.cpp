// Many sessions on many threads: each computes the bits that it computes alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "expect_error.h"
#include "model_case.h"
#include "sluice/session.h"
#include "source_dir.h"

namespace sluice {
namespace {

constexpr int kThreads = 8;
constexpr int kSessions = 32;
constexpr int kActions = 10;
constexpr std::int64_t kCapacity = 160;

// A session and the random operations on it, executed in order by any threads.
class Life {
 public:
  Life(Engine& engine, unsigned seed) : session_(engine.new_session(kCapacity)), random_(seed) {
    vocab_ = engine.summary().vocab;
  }

  bool done() const { return actions_ == kActions; }
  void act() {
    ++actions_;
    switch (session_->length() == 0 ? 0 : pick(0, 6)) {
      case 0:
        extend(pick(1, 90));
        break;
      case 1:
        step();
        break;
      case 2:
        generate();
        break;
      case 3:
        snapshot_ = session_->snapshot();
        break;
      case 4:
        saved_ ? session_->restore(snapshot_) : session_->reset();
        break;
      case 5:
        there_and_back();
        break;
      default:
        extend(1);
        break;
    }
    saved_ = snapshot_.length() > 0;
    seen_.insert(seen_.end(), session_->logits().begin(), session_->logits().end());
  }
  // All logits that it computed.
  const std::vector<float>& seen() const { return seen_; }

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution(low, high)(random_);
  }
  std::int32_t token() { return static_cast<std::int32_t>(pick(0, vocab_ - 1)); }
  void extend(std::int64_t count) {
    if (session_->length() + count > kCapacity) return session_->reset();
    std::vector<std::int32_t> tokens;
    for (std::int64_t i = 0; i < count; ++i) tokens.push_back(token());
    session_->extend(tokens);
  }
  void step() {
    if (session_->length() < kCapacity) session_->step(token());
  }
  void generate() {
    const SamplingSettings settings{.temperature = 0.8, .seed = static_cast<std::uint64_t>(pick(0, 1 << 20))};
    seen_.push_back(static_cast<float>(session_->sample(settings, vocab_).id));
    for (int i = 0; i < 3 && session_->length() < kCapacity; ++i)
      seen_.push_back(static_cast<float>(session_->step_and_sample(settings, vocab_).id));
  }
  void there_and_back() {
    const Snapshot mark = session_->mark();
    step();
    session_->rewind(mark);
    if (session_->length() < kCapacity) generate();
  }

  std::unique_ptr<Session> session_;
  std::mt19937 random_;
  std::int64_t vocab_ = 0;
  int actions_ = 0;
  Snapshot snapshot_;
  bool saved_ = false;
  std::vector<float> seen_;
};

class Sessions : public ::testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    SLUICE_NEED_DEVICE_OF(GetParam());
    engine_ = GetParam().load(64);
  }
  // Devices allocate memory in larger pieces, tensor by tensor.
  static std::uint64_t slack() { return GetParam().on_cuda() ? std::uint64_t{64} << 21 : 0; }
  std::shared_ptr<Engine> engine_;
};

TEST_P(Sessions, OnManyThreadsEachComputesAsIfAlone) {
  std::vector<std::vector<float>> alone;
  for (unsigned seed = 0; seed < kSessions; ++seed) {
    Life life(*engine_, seed);
    while (!life.done()) life.act();
    alone.push_back(life.seen());
  }
  std::vector<std::unique_ptr<Life>> lives;
  for (unsigned seed = 0; seed < kSessions; ++seed) lives.push_back(std::make_unique<Life>(*engine_, seed));
  std::vector<std::mutex> turns(kSessions);
  std::atomic<int> left = kSessions * kActions;
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    while (left > 0) {
      const std::size_t i = random() % kSessions;
      const std::unique_lock turn(turns[i], std::try_to_lock);
      if (!turn.owns_lock() || lives[i]->done()) continue;
      lives[i]->act();
      --left;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < lives.size(); ++i)
    EXPECT_EQ(lives[i]->seen(), alone[i]) << "the session with seed " << i;
}

// Sessions, and finally their engine, are created and destroyed on all threads.
TEST_P(Sessions, ComeAndGoOnAnyThread) {
  constexpr unsigned kLives = 4;
  std::vector<std::vector<float>> seen[kThreads];
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([engine = engine_, &lives = seen[t], t] {
      for (unsigned i = 0; i < kLives; ++i) {
        Life life(*engine, t * 10 + i);
        life.act();
        lives.push_back(life.seen());
      }
    });
  engine_.reset();
  for (std::thread& thread : threads) thread.join();
  const auto engine = GetParam().load(64);
  for (unsigned t = 0; t < kThreads; ++t)
    for (unsigned i = 0; i < kLives; ++i) {
      Life alone(*engine, t * 10 + i);
      alone.act();
      EXPECT_EQ(seen[t].at(i), alone.seen()) << "life " << i << " of thread " << t;
    }
}

TEST_P(Sessions, StoppedPromptsContinueWhereTheyStopped) {
  std::vector<std::int32_t> tokens;
  for (std::int32_t i = 0; i < 150; ++i) tokens.push_back(i * 31 % 97);
  const auto whole = engine_->new_session(kCapacity);
  std::vector<std::int64_t> heard;
  EXPECT_TRUE(whole->extend(tokens, [&](std::int64_t done, std::int64_t all) {
    EXPECT_EQ(all, 150);
    heard.push_back(done);
    return true;
  }));
  EXPECT_EQ(heard, (std::vector<std::int64_t>{64, 128, 150}));
  const auto stopped = engine_->new_session(kCapacity);
  EXPECT_FALSE(stopped->extend(tokens, [](std::int64_t done, std::int64_t) { return done < 128; }));
  EXPECT_EQ(stopped->length(), 128);
  EXPECT_TRUE(stopped->logits().empty());
  expect_error(ErrorKind::input, {"stopped"}, [&] { stopped->sample({}, engine_->summary().vocab); });
  const Snapshot point = stopped->snapshot();
  stopped->extend(std::span(tokens).subspan(128));
  EXPECT_TRUE(std::ranges::equal(whole->logits(), stopped->logits()));
  const auto other = engine_->new_session(kCapacity);
  other->restore(point);
  other->extend(std::span(tokens).subspan(128));
  EXPECT_TRUE(std::ranges::equal(whole->logits(), other->logits()));
}

TEST_P(Sessions, TakeTheMemoryThatWasSaid) {
  const std::uint64_t before = engine_->memory().allocated;
  auto first = engine_->new_session(600);
  const std::uint64_t empty = engine_->memory().allocated;
  EXPECT_LT(empty - before, engine_->session_bytes(600) + engine_->shared_bytes(600) + slack());
  auto second = engine_->new_session(40);
  const std::vector<std::int32_t> tokens(600, 7);
  const auto use = [&](Session& session, std::size_t count) {
    session.reset();
    session.extend(std::span(tokens).first(count - 2));
    session.sample({}, 10);
    session.step_and_sample({}, 10);
    session.step_and_sample({.temperature = 1}, 10);
    session.reset();
    session.extend(std::span(tokens).first(count));
  };
  use(*first, 300);
  EXPECT_EQ(first->bytes(), engine_->session_bytes(512)) << "two pages of three";
  use(*second, 40);
  EXPECT_EQ(second->bytes(), engine_->session_bytes(40));
  use(*first, 600);
  EXPECT_EQ(first->bytes(), engine_->session_bytes(600));
  const EngineMemory taken = engine_->memory();
  const std::uint64_t said =
      engine_->session_bytes(600) + engine_->session_bytes(40) + engine_->shared_bytes(600);
  EXPECT_GE(taken.allocated - before, said);
  EXPECT_LE(taken.allocated - before, said + slack());
  EXPECT_EQ(taken.sessions + taken.shared, taken.allocated - before);
  EXPECT_LE(taken.programs, engine_->program_bytes());
  first.reset();
  EXPECT_LE(engine_->memory().allocated - before,
            engine_->session_bytes(600) + engine_->session_bytes(40) + engine_->shared_bytes(600) + slack());
  second.reset();
  EXPECT_EQ(engine_->memory().allocated, before);
}

// Pages that one session wrote are reused by another.
TEST_P(Sessions, GiveTheirMemoryToTheNext) {
  std::vector<std::int32_t> tokens(500);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 29 % 89);
  auto first = engine_->new_session(500);
  const auto second = engine_->new_session(500);
  first->extend(tokens);
  second->extend(std::span(tokens).first(320));
  const std::uint64_t most = engine_->memory().allocated;
  const std::vector<float> want(first->logits().begin(), first->logits().end());
  first.reset();
  const auto third = engine_->new_session(500);
  third->extend(tokens);
  EXPECT_TRUE(std::ranges::equal(third->logits(), want));
  EXPECT_EQ(engine_->memory().allocated, most);
  second->extend(std::span(tokens).subspan(320));
  EXPECT_TRUE(std::ranges::equal(second->logits(), want));
}

INSTANTIATE_TEST_SUITE_P(Models, Sessions,
                         ::testing::Values(ModelCase{"cpu", "qwen3_5"},
                                           ModelCase{"cpu", "mlx-qwen3_5_moe-4bit"},
                                           ModelCase{"cpu", "qwen3_moe"}, ModelCase{"cpu", "qwen3_next"},
                                           ModelCase{"cpu", "deepseek_v3"},
                                           ModelCase{"cuda", "mlx-qwen3_5_moe-4bit"},
                                           ModelCase{"cuda", "deepseek_v3"}),
                         model_case_name<ModelCase>);

}  // namespace
}  // namespace sluice
