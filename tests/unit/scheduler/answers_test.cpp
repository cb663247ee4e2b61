// Whatever else runs, whenever a request comes, wherever it has to wait: its answer is that of a session of
// its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <span>
#include <thread>

#include "cuda_device.h"
#include "load_model.h"
#include "sluice/scheduler.h"

namespace sluice {
namespace {

struct Case {
  const char* backend;
  const char* model;
  int bits = 16;  // of the caches
  int requests = 64;
  int longest = 600;  // prompt
};

std::ostream& operator<<(std::ostream& to, const Case& one) {
  return to << one.backend << ' ' << one.model << ' ' << one.bits << " bits";
}

std::string message_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& caught) {
    return caught.what();
  }
  return {};
}

// A request and what its callbacks heard.
struct Asked {
  Request request;
  std::int64_t cancel_after = -1;  // tokens; -1: never
  GenerateResult want;

  RequestHandle handle;
  std::atomic<bool> submitted{false};
  std::vector<std::int32_t> ids;
  std::string text;
  std::vector<double> logprobs;
  std::vector<std::int64_t> progress;
  int done = 0;
  RequestResult result;
};

class Answers : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& one = GetParam();
    if (std::string_view(one.backend) == "cuda") {
      SLUICE_NEED_CUDA();
    }
    engine_ = load_model(one.model, {.backend = one.backend,
                                     .threads = 2,
                                     .prefill_chunk = 512,
                                     .key_bits = one.bits,
                                     .value_bits = one.bits});
    const unsigned seed = std::random_device()();
    SCOPED_TRACE(seed);
    RecordProperty("seed", static_cast<int>(seed));
    std::cout << "seed " << seed << '\n';
    random_.seed(seed);
  }

  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  Request some_request();
  void ask(Asked& asked);
  void check(const Asked& asked) const;

  static constexpr std::int64_t kContext = 700;
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
  std::mt19937 random_;
};

Request Answers::some_request() {
  Request request;
  const int length = below(4) == 0 ? 1 + below(GetParam().longest) : 1 + below(GetParam().longest / 4);
  for (int i = 0; i < length; ++i)
    request.prompt.push_back(below(static_cast<int>(engine_->summary().vocab)));
  GenerateOptions& options = request.options;
  options.max_tokens = below(40);
  options.ignore_stop_ids = below(2) == 0;
  if (below(2) == 0) options.sampling.temperature = 0.5 + below(10) * 0.1;
  if (below(3) == 0) options.sampling.repetition_penalty = 1.2;
  if (below(3) == 0) options.sampling.frequency_penalty = 0.3;
  if (below(4) == 0) options.sampling.penalty_window = 20;
  if (below(4) == 0) options.logprobs = 3;
  if (below(4) == 0) options.min_tokens = below(10);
  if (below(4) == 0) options.stop = {"the", "a "};
  if (below(4) == 0) options.extra_stop_ids = {1, 2, 3, 4, 5};
  if (below(5) == 0) options.sampling.logit_bias = {{7, 2.0}, {8, -100.0}};
  options.sampling.seed = random_();
  request.key = std::string(1, static_cast<char>('a' + below(5)));
  request.priority = below(3);
  return request;
}

void Answers::ask(Asked& asked) {
  RequestCallbacks callbacks;
  callbacks.progress = [&asked](std::int64_t read, std::int64_t all) {
    EXPECT_EQ(all, static_cast<std::int64_t>(asked.request.prompt.size()));
    asked.progress.push_back(read);
  };
  callbacks.token = [&asked](const GeneratedToken& token) {
    if (token.id >= 0) asked.ids.push_back(token.id);
    asked.text += token.text;
    asked.logprobs.push_back(token.logprob);
    EXPECT_EQ(asked.done, 0);
    while (!asked.submitted) std::this_thread::yield();
    if (static_cast<std::int64_t>(asked.ids.size()) == asked.cancel_after) asked.handle.cancel();
  };
  callbacks.done = [&asked](const RequestResult& result) {
    ++asked.done;
    asked.result = result;
  };
  asked.handle = scheduler_->submit(asked.request, callbacks);
  asked.submitted = true;
}

void Answers::check(const Asked& asked) const {
  ASSERT_EQ(asked.done, 1);
  ASSERT_EQ(message_of(asked.result.error), "");
  const GenerateResult& got = asked.result.generated;
  EXPECT_EQ(asked.ids, got.ids);
  EXPECT_EQ(asked.text, got.text);
  if (asked.cancel_after == 0) return;  // at any time
  EXPECT_EQ(asked.progress.front(), asked.result.prompt.cached);
  EXPECT_EQ(asked.progress.back(), static_cast<std::int64_t>(asked.request.prompt.size()));
  if (asked.cancel_after > 0 && got.reason == FinishReason::cancelled) {
    EXPECT_LE(asked.cancel_after, static_cast<std::int64_t>(got.ids.size()));
    EXPECT_LE(static_cast<std::int64_t>(got.ids.size()), asked.cancel_after + 1) << "it goes on for a step";
    ASSERT_LE(got.ids.size(), asked.want.ids.size());
    EXPECT_TRUE(std::ranges::equal(got.ids, std::span(asked.want.ids).first(got.ids.size())));
    return;
  }
  EXPECT_EQ(got.ids, asked.want.ids);
  EXPECT_EQ(got.text, asked.want.text);
  EXPECT_EQ(got.reason, asked.want.reason);
}

TEST_P(Answers, AreThoseOfASessionAlone) {
  std::vector<Asked> all(static_cast<std::size_t>(GetParam().requests));
  const auto session = engine_->new_session(kContext);
  for (Asked& asked : all) {
    asked.request = some_request();
    if (below(6) == 0) asked.cancel_after = below(8);
    session->reset();
    asked.want = generate(*session, asked.request.prompt, asked.request.options);
  }
  // Five pages, of which a sequence may need three: some have to wait for others.
  scheduler_ = std::make_unique<Scheduler>(
      engine_, SchedulerOptions{.parallel = 6, .context = kContext, .cache_tokens = 1280});
  std::vector<std::thread> clients;
  for (std::size_t client = 0; client < 8; ++client)
    clients.emplace_back([&, client] {
      for (std::size_t i = client; i < all.size(); i += 8) {
        ask(all[i]);
        if (all[i].cancel_after == 0) all[i].handle.cancel();
        if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
  for (std::thread& client : clients) client.join();
  scheduler_->drain();
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    check(all[i]);
  }
  const SchedulerState state = scheduler_->state();
  EXPECT_EQ(state.requests, all.size());
  EXPECT_EQ(state.finished + state.cancelled, all.size());
  EXPECT_EQ(state.failed, 0u);
  EXPECT_EQ(state.cache_tokens_used, 0);
  EXPECT_TRUE(state.sequences.empty());
  RecordProperty("suspensions", static_cast<int>(state.suspensions));
  std::cout << state.suspensions << " suspensions, " << state.decode_steps << " steps\n";
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = std::string(info.param.backend) + "_" + info.param.model;
  if (info.param.bits != 16) name += "_" + std::to_string(info.param.bits);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Waiting for pages changes nothing, however often it happens.
using SuspendedAnswers = Answers;
TEST_P(SuspendedAnswers, AreThoseOfASessionAlone) {
  std::vector<Asked> all(6);
  const auto session = engine_->new_session(kContext);
  for (Asked& asked : all) {
    asked.request = some_request();
    asked.request.prompt.resize(100, 5);
    asked.request.options.max_tokens = 180;
    asked.request.options.ignore_stop_ids = true;
    asked.request.options.extra_stop_ids = {};
    asked.request.options.stop = {};
    session->reset();
    asked.want = generate(*session, asked.request.prompt, asked.request.options);
  }
  scheduler_ = std::make_unique<Scheduler>(
      engine_, SchedulerOptions{.parallel = 6, .context = kContext, .cache_tokens = 1536});
  for (Asked& asked : all) ask(asked);
  scheduler_->drain();
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    check(all[i]);
  }
  EXPECT_GT(scheduler_->state().suspensions, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Answers,
    ::testing::Values(Case{"cpu", "delta-story", 16, 8, 200}, Case{"cpu", "latent-story", 4, 6, 200},
                      Case{"cpu", "qwen3_next"}, Case{"cpu", "mlx-qwen3_5_moe-4bit", 16, 24, 400},
                      Case{"cpu", "deepseek_v3", 16, 24, 400}, Case{"cpu", "qwen3_moe", 16, 24, 400},
                      Case{"cpu", "qwen3_5", 4, 16, 400},
                      Case{"reference", "qwen3_5_moe-irregular", 16, 12, 200}, Case{"cuda", "delta-story"},
                      Case{"cuda", "qwen3_next"}, Case{"cuda", "latent-story", 4}),
    name_of);
INSTANTIATE_TEST_SUITE_P(Models, SuspendedAnswers,
                         ::testing::Values(Case{"cpu", "qwen3_next"}, Case{"cpu", "deepseek_v3", 4},
                                           Case{"cuda", "delta-story"}),
                         name_of);

}  // namespace
}  // namespace sluice
