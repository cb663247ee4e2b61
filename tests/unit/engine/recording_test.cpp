// Steps on a device that records programs: recorded ops run again over the same memory, so everything that
// changes from step to step must be in that memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "engine/executor.h"
#include "load_model.h"
#include "printed_seed.h"
#include "sluice/session.h"

namespace sluice::engine {
namespace {

// A CPU backend that records the ops of a program as GPU graphs do.
class RecordingBackend final : public ops::Backend {
 public:
  static constexpr std::uint64_t kProgramBytes = 1000;

  explicit RecordingBackend(std::unique_ptr<ops::Backend> inner) : inner_(std::move(inner)) {}

  int programs() const { return programs_; }

  std::string_view name() const override { return inner_->name(); }
  std::string description() const override { return inner_->description(); }
  const ops::Traits& traits() const override { return inner_->traits(); }
  bool exact() const override { return inner_->exact(); }
  void upload(void* to, const void* from, std::size_t bytes) override { inner_->upload(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { inner_->download(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { inner_->copy(to, from, bytes); }
  void clear(void* to, std::size_t bytes) override { inner_->clear(to, bytes); }
  void synchronize() override { inner_->synchronize(); }
  ops::Rates measure_rates(std::uint64_t memory) override { return inner_->measure_rates(memory); }
  std::unique_ptr<ops::Program> record(std::function<void()> body) override {
    ++programs_;
    auto program = std::make_unique<Kept>(*inner_);
    kept_ = program.get();
    body();
    kept_ = nullptr;
    return program;
  }

 private:
  struct Kept final : ops::Program {
    explicit Kept(ops::Backend& on) : backend(on) {}
    void run() override {
      for (const auto& call : calls) call(backend);
    }
    std::uint64_t bytes() const override { return kProgramBytes; }
    ops::Backend& backend;
    std::vector<std::function<void(ops::Backend&)>> calls;
  };

  ops::Buffer allocate_block(std::size_t bytes) override { return inner_->allocate(bytes); }
  std::unique_ptr<ops::GrowingBuffer> reserve_range(std::size_t most) override {
    return inner_->reserve(most);
  }
  bool reads_contents() const override { return false; }
  void execute(const ops::AnyOp& op, ops::Phase phase) override {
    std::visit(
        [&](const auto* known) {
          if (kept_ == nullptr) return inner_->run(*known, phase);
          kept_->calls.push_back([copy = *known, phase](ops::Backend& on) { on.run(copy, phase); });
        },
        op);
  }

  std::unique_ptr<ops::Backend> inner_;
  Kept* kept_ = nullptr;
  int programs_ = 0;
};

struct Case {
  const char* model;
  int bits = 16;
};

class RecordedSteps : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::int32_t kSlots = 4;
  static constexpr std::int64_t kPrompt = 250;

  static std::shared_ptr<Engine> load() {
    return load_model(GetParam().model, {.backend = "cpu",
                                         .threads = 2,
                                         .prefill_chunk = 1024,
                                         .key_bits = GetParam().bits,
                                         .value_bits = GetParam().bits});
  }
  void SetUp() override {
    std::unique_ptr<ops::Backend>& backend = core(*recorded_).backend;
    auto recording = std::make_unique<RecordingBackend>(std::move(backend));
    backend_ = recording.get();
    backend = std::move(recording);
    vocab_ = recorded_->summary().vocab;
  }
  std::int32_t token() { return static_cast<std::int32_t>(random_() % static_cast<std::uint32_t>(vocab_)); }
  // The logits after each of these batches, in a group of that engine.
  std::vector<float> run(Engine& engine, const state::Extent& extent, std::span<const Batch> batches) {
    Executor& executor = *core(engine).executor;
    const auto group = executor.reserve(extent);
    std::vector<float> seen;
    executor.run([&] {
      std::vector<float> logits;
      for (const Batch& batch : batches) {
        group->pass.run(batch);
        group->pass.read_logits(logits);
        seen.insert(seen.end(), logits.begin(), logits.end());
      }
    });
    if (&engine == recorded_.get()) {
      EXPECT_EQ(engine.memory().programs,
                RecordingBackend::kProgramBytes * static_cast<std::uint64_t>(backend_->programs()));
    }
    return seen;
  }

  std::shared_ptr<Engine> recorded_ = load();
  std::shared_ptr<Engine> plain_ = load();
  RecordingBackend* backend_ = nullptr;
  std::int64_t vocab_ = 0;
  std::mt19937 random_{23};
};

// Any subset of the slots, at any positions: one program per number of sequences.
TEST_P(RecordedSteps, AreRecordedOnceForEachNumberOfSequences) {
  std::vector<std::vector<std::int32_t>> tokens(kSlots);
  std::vector<Batch> batches;
  for (std::int32_t slot = 0; slot < kSlots; ++slot) {
    for (std::int64_t i = 0; i < kPrompt + 40; ++i) tokens[to_size(slot)].push_back(token());
    batches.push_back({ops::Phase::prefill,
                       {{slot, 0, std::span(tokens[to_size(slot)]).first(to_size(kPrompt - 9 * slot)), 1}}});
  }
  std::vector<std::int64_t> past;
  for (std::int64_t slot = 0; slot < kSlots; ++slot) past.push_back(kPrompt - 9 * slot);
  std::set<std::size_t> sizes;
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<std::int32_t> order{0, 1, 2, 3};
    std::shuffle(order.begin(), order.end(), random_);
    order.resize(1 + random_() % kSlots);
    sizes.insert(order.size());
    Batch batch{ops::Phase::decode, {}};
    for (const std::int32_t slot : order) {
      std::int64_t& at = past[to_size(slot)];
      batch.sequences.push_back({slot, at, std::span(tokens[to_size(slot)]).subspan(to_size(at), 1), 1});
      ++at;
    }
    batches.push_back(batch);
  }
  const state::Extent extent{kSlots, kPrompt + 40};
  EXPECT_EQ(run(*recorded_, extent, batches), run(*plain_, extent, batches));
  EXPECT_EQ(backend_->programs(), std::ssize(sizes));
}

// Any mixture of settings and masks: per number of sequences, one program if all rows are greedy and one for
// all other cases.
TEST_P(RecordedSteps, ServeAnySettings) {
  const unsigned seed = printed_seed();
  const auto live = [&](Engine& engine) {
    std::mt19937 random(seed);
    Executor& executor = *core(engine).executor;
    const auto group = executor.reserve({kSlots, 200});
    std::vector<std::vector<std::int32_t>> timelines(kSlots, {3, 1, 4, 1, 5});
    std::vector<double> seen;
    int before = 0;
    executor.run([&] {
      Batch prompts;
      for (std::int32_t slot = 0; slot < kSlots; ++slot)
        prompts.sequences.push_back({slot, 0, timelines[to_size(slot)], 0});
      group->pass.run(prompts);
      for (std::vector<std::int32_t>& timeline : timelines) timeline.push_back(2);
      for (int turn = 0; turn < 60; ++turn) {
        // For each number of sequences, the first turns are greedy and the next are not, so that all kinds
        // occur.
        const auto count = to_size(1 + turn % kSlots);
        const bool greedy = turn < kSlots || (turn >= 2 * kSlots && random() % 3 == 0);
        std::vector<SamplingSettings> settings(count);
        std::vector<std::vector<std::uint8_t>> masks(count);
        std::vector<ForwardPass::Next> next;
        std::vector<SampleRequest> requests;
        for (std::size_t i = 0; i < count; ++i) {
          SamplingSettings& one = settings[i];
          if (!greedy) one = {.temperature = 1.2, .top_k = static_cast<int>(random() % 9), .seed = random()};
          if (random() % 2 == 0) one.frequency_penalty = 0.5;
          if (random() % 3 == 0) one.repetition_penalty = 1.2;
          if (random() % 3 == 0) one.logit_bias = {{static_cast<std::int32_t>(random() % 20), 2.5}};
          if (!greedy && random() % 3 == 0) one.logprobs = 3;
          if (!greedy) one.top_p = 0.9, one.min_p = 0.01;
          if (random() % 4 == 0) {
            masks[i].assign(to_size((engine.summary().vocab + 7) / 8), 0);
            masks[i][random() % 4] = 0x5a;
          }
          next.push_back(
              {static_cast<std::int32_t>(i), to_int(timelines[i].size()) - 1, timelines[i].back()});
          requests.push_back({one, timelines[i], masks[i]});
        }
        for (const SampledToken& token :
             group->pass.step_and_sample(next, requests, engine.summary().vocab)) {
          seen.push_back(token.id);
          seen.push_back(token.logprob);
          for (const TokenLogprob& top : token.top) seen.push_back(top.logprob);
        }
        for (std::size_t i = 0; i < count; ++i)
          timelines[i].push_back(static_cast<std::int32_t>(random() % 30));  // any tokens
        if (turn + 1 == 2 * kSlots) before = backend_->programs();
      }
    });
    if (&engine == recorded_.get()) {
      EXPECT_EQ(before, 2 * kSlots);
      EXPECT_EQ(backend_->programs(), before) << "settings record nothing";
    }
    return seen;
  };
  EXPECT_EQ(live(*recorded_), live(*plain_));
}

// Sessions share recorded programs: a step, a greedy one and a sampling one, whichever sessions run them and
// however many there are.
TEST_P(RecordedSteps, ServeAllSessions) {
  const auto live = [&](Engine& engine) {
    std::mt19937 random(5);
    std::vector<double> seen;
    const auto see = [&](const Session& session) {
      seen.insert(seen.end(), session.logits().begin(), session.logits().end());
    };
    std::vector<std::unique_ptr<Session>> sessions;
    for (int turn = 0; turn < 60; ++turn) {
      if (sessions.size() < kSlots) {
        std::vector<std::int32_t> prompt(1 + random() % 300);
        for (std::int32_t& id : prompt) id = static_cast<std::int32_t>(random() % 90);
        sessions.push_back(engine.new_session(std::ssize(prompt) + 60));
        sessions.back()->extend(prompt);
      }
      Session& session = *sessions[random() % sessions.size()];
      SamplingSettings settings;
      if (random() % 2 == 0) settings = {.temperature = 0.9, .frequency_penalty = 0.7, .seed = random()};
      if (random() % 2 == 0) session.step(static_cast<std::int32_t>(random() % 90));
      seen.push_back(session.sample(settings, vocab_).id);
      for (auto steps = random() % 4; steps > 0; --steps)
        seen.push_back(session.step_and_sample(settings, vocab_).id);
      see(*sessions[random() % sessions.size()]);
      if (random() % 8 == 0) sessions.erase(sessions.begin() + static_cast<int>(random() % sessions.size()));
    }
    if (&engine == recorded_.get()) {
      EXPECT_EQ(engine.memory().programs, 3 * RecordingBackend::kProgramBytes);
    }
    return seen;
  };
  EXPECT_EQ(live(*recorded_), live(*plain_));
  EXPECT_EQ(backend_->programs(), 3);
}

INSTANTIATE_TEST_SUITE_P(Models, RecordedSteps,
                         ::testing::Values(Case{"mlx-qwen3_5_moe-4bit"}, Case{"qwen3_next"},
                                           Case{"deepseek_v3"}, Case{"delta-story", 4}),
                         [](const auto& info) {
                           std::string name = info.param.model;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return info.param.bits == 16 ? name : name + "_packed";
                         });

}  // namespace
}  // namespace sluice::engine
