// Whatever else runs, whenever a request arrives, and wherever it has to wait: its answer is that of a
// session of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <thread>

#include "message_of.h"
#include "model_case.h"
#include "printed_seed.h"
#include "sluice/scheduler.h"

namespace sluice {
namespace {

struct Case : ModelCase {
  int requests = 64;
  int longest = 600;  // prompt
};

// A request and the events of its callbacks.
struct Asked {
  Request request;
  std::int64_t cancel_after = -1;  // tokens; -1: never
  GenerateResult want;
  std::vector<std::vector<double>> probabilities;  // of every token, after each token of the prompt

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
    SLUICE_NEED_DEVICE_OF(GetParam());
    engine_ = GetParam().load(512);
    random_.seed(printed_seed());
  }

  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  Request some_request();
  void find_want(Session& session, Asked& asked) const;
  void ask(Asked& asked);
  void check(const Asked& asked) const;
  static void check_scores(const Asked& asked);

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
  if (below(4) == 0) request.prompt_logprobs = below(4);
  return request;
}

// The answer of a session alone, and its logits of the prompt.
void Answers::find_want(Session& session, Asked& asked) const {
  session.reset();
  asked.want = generate(session, asked.request.prompt, asked.request.options);
  if (asked.request.prompt_logprobs < 0) return;
  session.reset();
  session.extend(asked.request.prompt, [&](std::int64_t, std::span<const float> logits) {
    std::vector<double> weights(logits.begin(), logits.end());
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (double& weight : weights) weight /= sum;
    asked.probabilities.push_back(std::move(weights));
  });
}

void Answers::check_scores(const Asked& asked) {
  const Request& request = asked.request;
  const std::vector<SampledToken>& got = asked.result.prompt_logprobs;
  if (request.prompt_logprobs < 0) {
    EXPECT_TRUE(got.empty());
    return;
  }
  EXPECT_EQ(asked.result.prompt.cached, 0);
  ASSERT_EQ(got.size(), request.prompt.size() - 1);
  constexpr double kNear = 1e-9;
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(i);
    std::vector<double> all = asked.probabilities[i];
    ASSERT_EQ(got[i].id, request.prompt[i + 1]);
    ASSERT_NEAR(got[i].logprob, std::log(all[static_cast<std::size_t>(got[i].id)]), kNear);
    ASSERT_EQ(got[i].top.size(), static_cast<std::size_t>(request.prompt_logprobs));
    for (const TokenLogprob& one : got[i].top)
      ASSERT_NEAR(one.logprob, std::log(asked.probabilities[i][static_cast<std::size_t>(one.id)]), kNear);
    std::sort(all.begin(), all.end(), std::greater<>());
    for (std::size_t k = 0; k < got[i].top.size(); ++k)
      ASSERT_NEAR(got[i].top[k].logprob, std::log(all[k]), kNear);
  }
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
  if (asked.cancel_after == 0) return;  // cancelled at any time
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
  check_scores(asked);
}

TEST_P(Answers, AreThoseOfASessionAlone) {
  std::vector<Asked> all(static_cast<std::size_t>(GetParam().requests));
  const auto session = engine_->new_session(kContext);
  for (Asked& asked : all) {
    asked.request = some_request();
    if (below(6) == 0) asked.cancel_after = below(8);
    find_want(*session, asked);
  }
  // Five pages, of which a sequence may need three, so some must wait for others.
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
    find_want(*session, asked);
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
    model_case_name<Case>);
INSTANTIATE_TEST_SUITE_P(Models, SuspendedAnswers,
                         ::testing::Values(Case{"cpu", "qwen3_next"}, Case{"cpu", "deepseek_v3", 4},
                                           Case{"cuda", "delta-story"}),
                         model_case_name<Case>);

}  // namespace
}  // namespace sluice
