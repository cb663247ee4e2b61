// Running, waiting and rejected requests, and the ways in which a request ends.
#include "sluice/scheduler.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "expect_error.h"
#include "message_of.h"
#include "source_dir.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

// A door at which a callback waits: the scheduler is blocked meanwhile.
class Door {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    waiting_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void wait_for_visitor() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool waiting_ = false;
};

class SchedulerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    engine_ = Engine::load(source_dir() + "/models/delta-story", {.backend = "cpu", .threads = 2});
  }
  Request story(std::int64_t tokens = 8) const {
    Request request;
    request.prompt = engine_->encode("Once upon a time");
    request.options.max_tokens = tokens;
    request.options.ignore_stop_ids = true;
    return request;
  }
  Request long_story(std::size_t tokens) const {
    Request request = story();
    const std::vector<std::int32_t> words = request.prompt;
    while (request.prompt.size() < tokens)
      request.prompt.insert(request.prompt.end(), words.begin(), words.end());
    request.prompt.resize(tokens);
    return request;
  }
  std::vector<std::int32_t> alone(const Request& request) const {
    return generate(*engine_->new_session(512), request.prompt, request.options).ids;
  }
  // Blocks the scheduler at its first token.
  RequestHandle hold(Scheduler& scheduler, Door& door) const {
    const RequestHandle handle =
        scheduler.submit(story(2), {.token = [&door](const GeneratedToken&) { door.pass(); }});
    door.wait_for_visitor();
    return handle;
  }

  std::shared_ptr<Engine> engine_;
};

TEST_F(SchedulerTest, FillsInItsOptions) {
  const Scheduler scheduler(engine_);
  EXPECT_GT(scheduler.options().parallel, 0);
  EXPECT_EQ(scheduler.options().context, 2048);
  EXPECT_EQ(scheduler.options().cache_tokens, scheduler.options().parallel * 2048);
  EXPECT_EQ(scheduler.state().parallel, scheduler.options().parallel);
}

TEST_F(SchedulerTest, RefusesWhatMakesNoSense) {
  const auto make = [&](const SchedulerOptions& options) { Scheduler scheduler(engine_, options); };
  expect_error(ErrorKind::input, {"-1 sequences"}, [&] { make({.parallel = -1}); });
  expect_error(ErrorKind::input, {"9999", "2048"}, [&] { make({.context = 9999}); });
  expect_error(ErrorKind::input, {"100", "512"}, [&] { make({.context = 512, .cache_tokens = 100}); });
  expect_error(ErrorKind::input, {"0 s"}, [&] { make({.token_interval_seconds = 0}); });
  Scheduler scheduler(engine_, {.parallel = 2, .context = 128});
  const auto submit = [&](auto&& change) {
    Request request = story();
    change(request);
    scheduler.submit(std::move(request), {});
  };
  expect_error(ErrorKind::input, {"empty"}, [&] { submit([](Request& one) { one.prompt.clear(); }); });
  expect_error(ErrorKind::input, {"129", "128"},
               [&] { submit([](Request& one) { one.prompt.resize(129); }); });
  expect_error(ErrorKind::input, {"4096"}, [&] { submit([](Request& one) { one.prompt[0] = 4096; }); });
  expect_error(ErrorKind::input, {"max_tokens"},
               [&] { submit([](Request& one) { one.options.max_tokens = -1; }); });
  expect_error(ErrorKind::input, {"min_tokens"},
               [&] { submit([](Request& one) { one.options.min_tokens = -1; }); });
  expect_error(ErrorKind::input, {"-1"}, [&] { submit([](Request& one) { one.timeout_seconds = -1; }); });
  expect_error(ErrorKind::input, {"top_p"},
               [&] { submit([](Request& one) { one.options.sampling.top_p = 7; }); });
  EXPECT_EQ(scheduler.state().requests, 0u);
}

TEST_F(SchedulerTest, AnswersAndReports) {
  Scheduler scheduler(engine_, {.parallel = 2, .context = 512});
  const RequestResult result = scheduler.run(story(20));
  EXPECT_EQ(result.generated.ids, alone(story(20)));
  EXPECT_EQ(result.generated.reason, FinishReason::length);
  EXPECT_EQ(result.prompt.tokens, static_cast<std::int64_t>(story().prompt.size()));
  EXPECT_EQ(result.generated.prompt_tokens, result.prompt.tokens);
  EXPECT_GT(result.generated.first_token_seconds, 0);
  EXPECT_GT(result.generated.decode_seconds, 0);
  scheduler.drain();
  const SchedulerState state = scheduler.state();
  EXPECT_EQ(state.finished, 1u);
  EXPECT_EQ(state.generated_tokens, 20u);
  EXPECT_EQ(state.prompt_tokens, story().prompt.size());
}

TEST_F(SchedulerTest, ReadsAPromptWithoutAnswering) {
  Scheduler scheduler(engine_, {.parallel = 2, .context = 512});
  const RequestResult result = scheduler.run(story(0));
  EXPECT_TRUE(result.generated.ids.empty());
  EXPECT_EQ(result.generated.reason, FinishReason::length);
  EXPECT_EQ(result.generated.prompt_tokens, result.prompt.tokens);
}

TEST_F(SchedulerTest, EndsWhereTheContextEnds) {
  Scheduler scheduler(engine_, {.parallel = 2, .context = 128});
  Request full = long_story(128);
  full.options.max_tokens = 100;
  EXPECT_EQ(scheduler.run(full).generated.ids.size(), 1u);
  Request nearly = long_story(100);
  nearly.options.max_tokens = 100;
  const auto session = engine_->new_session(128);
  EXPECT_EQ(scheduler.run(nearly).generated.ids, generate(*session, nearly.prompt, nearly.options).ids);
}

TEST_F(SchedulerTest, TurnsAwayWhatTheQueueCannotHold) {
  Door door;
  Scheduler scheduler(engine_, {.parallel = 1, .context = 512, .queue = 2});
  hold(scheduler, door);
  scheduler.submit(story(), {});
  scheduler.submit(story(), {});
  expect_error(ErrorKind::busy, {"queue", "2"}, [&] { scheduler.submit(story(), {}); });
  EXPECT_EQ(scheduler.state().refused, 1u);
  EXPECT_EQ(scheduler.state().waiting, 2);
  door.open();
  scheduler.drain();
  EXPECT_EQ(scheduler.state().finished, 3u);
  expect_error(ErrorKind::busy, {"no more"}, [&] { scheduler.submit(story(), {}); });
}

TEST_F(SchedulerTest, EndsRequestsThatAreLate) {
  Door door;
  Scheduler scheduler(engine_, {.parallel = 1, .context = 512});
  hold(scheduler, door);
  Request late = story();
  late.timeout_seconds = 0.01;
  std::promise<RequestResult> waited;
  scheduler.submit(late, {.done = [&](const RequestResult& result) { waited.set_value(result); }});
  std::this_thread::sleep_for(20ms);
  door.open();
  const RequestResult result = waited.get_future().get();
  EXPECT_NE(message_of(result.error).find("0.01 s"), std::string::npos) << message_of(result.error);
  EXPECT_EQ(result.generated.reason, FinishReason::cancelled);
  // A running one keeps what came before, of which a busy machine may need longer to compute any.
  Request running = story(100000);
  RequestResult cut;
  for (running.timeout_seconds = 0.1; cut.generated.ids.empty(); running.timeout_seconds *= 4) {
    ASSERT_LT(running.timeout_seconds, 100);
    cut = scheduler.run(running);
    EXPECT_EQ(cut.generated.reason == FinishReason::cancelled, cut.error != nullptr);
  }
}

TEST_F(SchedulerTest, CancelsBetweenTheChunksOfAPrompt) {
  Scheduler scheduler(engine_, {.parallel = 2, .context = 2048});
  Request request = long_story(2000);
  std::promise<RequestResult> done;
  std::promise<RequestHandle> handle;
  auto known = handle.get_future().share();
  std::vector<std::int64_t> reads;
  handle.set_value(scheduler.submit(request, {.progress =
                                                  [&](std::int64_t read, std::int64_t) {
                                                    reads.push_back(read);
                                                    known.get().cancel();
                                                  },
                                              .done = [&](const auto& result) { done.set_value(result); }}));
  const RequestResult result = done.get_future().get();
  EXPECT_EQ(result.generated.reason, FinishReason::cancelled);
  EXPECT_FALSE(result.error);
  EXPECT_LT(reads.back(), 2000);
  scheduler.drain();
  EXPECT_EQ(scheduler.state().cancelled, 1u);
}

TEST_F(SchedulerTest, CancelsItsRequestsOnDestruction) {
  std::vector<RequestHandle> handles;
  int done = 0;
  {
    Scheduler scheduler(engine_, {.parallel = 1, .context = 512});
    for (int i = 0; i < 5; ++i)
      handles.push_back(scheduler.submit(story(400), {.done = [&](const RequestResult& result) {
                                           ++done;
                                           EXPECT_EQ(result.generated.reason, FinishReason::cancelled);
                                         }}));
  }
  EXPECT_EQ(done, 5);
  for (const RequestHandle& handle : handles) handle.cancel();  // no effect
}

// With one slot, requests run one after the other: they end in the order of their turns.
TEST_F(SchedulerTest, SharesPlacesFairlyAndByPriority) {
  Door door;
  std::string order;
  Scheduler scheduler(engine_, {.parallel = 1, .context = 512});
  hold(scheduler, door);
  const auto submit = [&](const char* key, int priority) {
    Request request = story(2);
    request.key = key;
    request.priority = priority;
    scheduler.submit(request, {.done = [&order, key](const RequestResult&) { order += key; }});
  };
  for (int i = 0; i < 4; ++i) submit("a", 0);
  submit("b", 0);
  submit("c", 5);
  door.open();
  scheduler.drain();
  ASSERT_EQ(order.size(), 6u);
  EXPECT_EQ(order[0], 'c');
  EXPECT_LE(order.find('b'), 2u) << order;
}

// Prompts that arrive during an answer are read in parts, between its tokens.
TEST_F(SchedulerTest, ContinuesAnswersWhileALongPromptIsRead) {
  Scheduler scheduler(engine_, {.parallel = 2, .context = 2048, .token_interval_seconds = 1e-6});
  std::atomic<int> tokens{0};
  std::atomic<int> tokens_at_first{-1};
  scheduler.submit(story(60), {.token = [&](const GeneratedToken&) { ++tokens; }});
  while (tokens == 0) std::this_thread::yield();
  Request request = long_story(1000);
  std::vector<std::int64_t> reads;
  scheduler.submit(request, {.progress = [&](std::int64_t read, std::int64_t) { reads.push_back(read); },
                             .token =
                                 [&](const GeneratedToken&) {
                                   if (tokens_at_first < 0) tokens_at_first = tokens.load();
                                 }});
  scheduler.drain();
  EXPECT_GE(tokens_at_first, 12) << "a token of the one for each 64 of the other";
  for (std::size_t i = 1; i + 1 < reads.size(); ++i) EXPECT_EQ(reads[i] % 64, 0);
}

TEST_F(SchedulerTest, ACallbackThatThrowsEndsOnlyItsRequest) {
  Scheduler scheduler(engine_, {.parallel = 4, .context = 512});
  std::promise<RequestResult> done;
  auto other = std::async(std::launch::async, [&] { return scheduler.run(story(50)); });
  scheduler.submit(story(400), {.token = [](const GeneratedToken&) { throw std::runtime_error("enough"); },
                                .done = [&](const RequestResult& result) { done.set_value(result); }});
  EXPECT_EQ(message_of(done.get_future().get().error), "enough");
  EXPECT_EQ(other.get().generated.ids, alone(story(50)));
}

// Callbacks may submit requests.
TEST_F(SchedulerTest, ACallbackMaySubmit) {
  Scheduler scheduler(engine_, {.parallel = 1, .context = 512});
  std::promise<RequestResult> second;
  scheduler.submit(story(3), {.done = [&](const RequestResult&) {
                     scheduler.submit(
                         story(4), {.done = [&](const RequestResult& result) { second.set_value(result); }});
                     EXPECT_EQ(scheduler.state().requests, 2u);
                   }});
  EXPECT_EQ(second.get_future().get().generated.ids, alone(story(4)));
}

TEST_F(SchedulerTest, NothingEndsAnAnswerBeforeItsFewestTokens) {
  Scheduler scheduler(engine_, {.parallel = 1, .context = 512});
  Request request = story(30);
  const std::vector<std::int32_t> ids = alone(request);
  request.options.extra_stop_ids = {ids[3], ids[12]};
  request.options.min_tokens = 8;
  const RequestResult result = scheduler.run(request);
  ASSERT_GE(result.generated.ids.size(), 8u);
  EXPECT_EQ(std::vector(ids.begin(), ids.begin() + 3),
            std::vector(result.generated.ids.begin(), result.generated.ids.begin() + 3));
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NE(result.generated.ids[i], ids[3]);
    EXPECT_NE(result.generated.ids[i], ids[12]);
  }
  EXPECT_EQ(result.generated.ids, alone(request));
}

// Allows only some tokens, and ends the answer after a while.
class SomeTokens : public TokenGuide {
 public:
  SomeTokens(std::int32_t modulus, int most, int failing = -1)
      : modulus_(modulus), most_(most), failing_(failing) {}
  bool mask(std::span<std::uint8_t> allowed) override {
    if (taken_ == failing_) throw std::runtime_error("the guide is lost");
    if (taken_ % 4 == 3) return false;  // anything
    std::fill(allowed.begin(), allowed.end(), 0);
    for (std::size_t id = 0; id < allowed.size() * 8; id += static_cast<std::size_t>(modulus_))
      allowed[id / 8] |= static_cast<std::uint8_t>(1u << id % 8);
    return true;
  }
  void accept(std::int32_t token) override {
    EXPECT_TRUE(taken_ % 4 == 3 || token % modulus_ == 0) << token;
    ++taken_;
  }
  bool finished() const override { return taken_ >= most_; }

 private:
  std::int32_t modulus_;
  int most_;
  int failing_;
  int taken_ = 0;
};

TEST_F(SchedulerTest, GuidesAffectOnlyTheirAnswers) {
  Scheduler scheduler(engine_, {.parallel = 4, .context = 512});
  std::vector<std::future<RequestResult>> results;
  for (std::int32_t modulus = 1; modulus <= 5; ++modulus)
    results.push_back(std::async(std::launch::async, [&, modulus] {
      Request request = story(30);
      if (modulus > 1) request.options.guide = std::make_shared<SomeTokens>(modulus, 5 * modulus);
      return scheduler.run(request);
    }));
  for (std::int32_t modulus = 1; modulus <= 5; ++modulus) {
    const RequestResult result = results[static_cast<std::size_t>(modulus - 1)].get();
    EXPECT_FALSE(result.error);
    Request request = story(30);
    if (modulus > 1) request.options.guide = std::make_shared<SomeTokens>(modulus, 5 * modulus);
    EXPECT_EQ(result.generated.ids, alone(request)) << modulus;
    EXPECT_EQ(result.generated.reason, modulus == 1 ? FinishReason::length : FinishReason::stop);
    EXPECT_EQ(result.generated.ids.size(), modulus == 1 ? 30u : static_cast<std::size_t>(5 * modulus));
  }
}

TEST_F(SchedulerTest, AGuideThatThrowsEndsOnlyItsRequest) {
  Scheduler scheduler(engine_, {.parallel = 4, .context = 512});
  for (const int failing : {0, 5}) {
    auto other = std::async(std::launch::async, [&] { return scheduler.run(story(30)); });
    Request request = story(30);
    request.options.guide = std::make_shared<SomeTokens>(2, 100, failing);
    const RequestResult result = scheduler.run(request);
    EXPECT_EQ(message_of(result.error), "the guide is lost");
    EXPECT_EQ(result.generated.ids.size(), static_cast<std::size_t>(failing));
    EXPECT_EQ(other.get().generated.ids, alone(story(30)));
  }
  Request nothing = story(30);
  nothing.options.guide = std::make_shared<SomeTokens>(100000, 100);
  // Only token 0 is allowed, and it is chosen.
  EXPECT_EQ(scheduler.run(nothing).generated.ids[0], 0);
}

// A guide with slow masks: the first takes processor time, all others wait until a door is opened.
class SlowTokens : public SomeTokens {
 public:
  SlowTokens(std::int32_t modulus, int most, Door& door) : SomeTokens(modulus, most), door_(door) {}
  bool mask(std::span<std::uint8_t> allowed) override {
    if (std::exchange(first_, false)) {
      for (const std::int64_t end = thread_time() + 20'000'000; thread_time() < end;) continue;
    } else {
      door_.pass();
    }
    return SomeTokens::mask(allowed);
  }

 private:
  static std::int64_t thread_time() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  }

  Door& door_;
  bool first_ = true;
};

TEST_F(SchedulerTest, NoRequestWaitsForMasksOfOthers) {
  Scheduler scheduler(engine_, {.parallel = 4, .context = 512});
  const auto guided = [&](std::shared_ptr<TokenGuide> guide) {
    Request request = story(12);
    request.options.guide = std::move(guide);
    return request;
  };
  Door door;
  auto slow = std::async(std::launch::async,
                         [&] { return scheduler.run(guided(std::make_shared<SlowTokens>(3, 100, door))); });
  door.wait_for_visitor();
  EXPECT_EQ(scheduler.run(story(12)).generated.ids, alone(story(12)));
  EXPECT_EQ(scheduler.run(guided(std::make_shared<SomeTokens>(2, 100))).generated.ids,
            alone(guided(std::make_shared<SomeTokens>(2, 100))));
  door.open();
  EXPECT_EQ(slow.get().generated.ids, alone(guided(std::make_shared<SomeTokens>(3, 100))));
}

// By cancelling them, and by destroying the scheduler.
TEST_F(SchedulerTest, AnswersEndWhileTheirMaskIsMade) {
  Door door;
  std::atomic<int> cancelled{0};
  {
    Scheduler scheduler(engine_, {.parallel = 4, .context = 512});
    std::vector<RequestHandle> handles;
    std::promise<void> ended;
    for (int i = 0; i < 2; ++i) {
      Request request = story(400);
      request.options.guide = std::make_shared<SlowTokens>(3, 1000, door);
      const auto done = [&, i](const RequestResult& result) {
        if (result.generated.reason == FinishReason::cancelled) ++cancelled;
        if (i == 0) ended.set_value();
      };
      handles.push_back(scheduler.submit(std::move(request), {.done = done}));
    }
    door.wait_for_visitor();
    handles[0].cancel();
    EXPECT_EQ(scheduler.run(story(4)).generated.ids, alone(story(4)));
    door.open();
    ended.get_future().get();
  }
  EXPECT_EQ(cancelled, 2);
}

TEST_F(SchedulerTest, TakesRequestsFromManyThreads) {
  Scheduler scheduler(engine_, {.parallel = 4, .context = 512});
  const std::vector<std::int32_t> want = alone(story(6));
  std::vector<std::thread> clients;
  std::atomic<int> right{0};
  for (int client = 0; client < 8; ++client)
    clients.emplace_back([&] {
      for (int i = 0; i < 4; ++i) {
        if (scheduler.run(story(6)).generated.ids == want) ++right;
        EXPECT_LE(scheduler.state().sequences.size(), 5u);
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, 32);
}

// Sessions of the same engine may be used at the same time.
TEST_F(SchedulerTest, LeavesSessionsAlone) {
  Scheduler scheduler(engine_, {.parallel = 2, .context = 512});
  auto answer = std::async(std::launch::async, [&] { return scheduler.run(story(60)).generated.ids; });
  const std::vector<std::int32_t> want = alone(story(60));
  EXPECT_EQ(answer.get(), want);
}

}  // namespace
}  // namespace sluice
