// Conversations that grow, are edited, fork and come back: what is remembered of them saves work and changes
// no token.
#include "conversations.h"

#include <future>

#include "expect_error.h"

namespace sluice {
namespace {

using Case = ConversationCase;

TEST_P(Conversations, AreAnsweredAsIfNothingWereRemembered) {
  const std::uint64_t state = engine_->summary().state_bytes;
  Scheduler scheduler(engine_, {.parallel = 3,
                                .context = kContext,
                                .cache_tokens = 2304,
                                .cache_memory = 6 * state,
                                .state_spacing = 256});
  std::vector<Ids> known;
  std::uint64_t cached = 0;
  std::uint64_t all = 0;
  int reasons[5] = {};
  for (int turn = 0; turn < GetParam().turns; ++turn) {
    std::vector<Request> requests;
    std::vector<std::future<RequestResult>> results;
    for (int i = 1 + below(3); i > 0; --i) {
      requests.push_back(
          request_for(i > 1 && !requests.empty() && below(2) == 0 ? requests[0].prompt : next_prompt(known)));
      results.push_back(std::async(
          std::launch::async, [&scheduler, request = requests.back()] { return scheduler.run(request); }));
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const RequestResult result = results[i].get();
      ASSERT_FALSE(result.error);
      EXPECT_EQ(result.generated.ids, alone(requests[i])) << "turn " << turn << ", request " << i;
      const PromptReport& report = result.prompt;
      EXPECT_EQ(report.tokens, static_cast<std::int64_t>(requests[i].prompt.size()));
      EXPECT_EQ(report.cached % 64, 0);
      EXPECT_LT(report.cached, report.tokens);
      EXPECT_LE(report.cached, report.common);
      EXPECT_LE(report.common, report.tokens);
      cached += static_cast<std::uint64_t>(report.cached);
      all += static_cast<std::uint64_t>(report.tokens);
      ++reasons[static_cast<int>(report.reason)];
      Ids whole = requests[i].prompt;
      whole.insert(whole.end(), result.generated.ids.begin(), result.generated.ids.end());
      known.push_back(std::move(whole));
    }
  }
  // Whatever was drawn above, what has just been read is remembered.
  Ids prompt;
  add_tokens(prompt, 300);
  for (int turn = 0; turn < 2; ++turn, add_tokens(prompt, 20)) {
    Request request;
    request.prompt = prompt;
    request.options.max_tokens = 1;
    const RequestResult result = scheduler.run(request);
    EXPECT_EQ(result.generated.ids, alone(request));
    if (turn == 1) {
      EXPECT_GE(result.prompt.cached, 64);
    }
    cached += static_cast<std::uint64_t>(result.prompt.cached);
    all += prompt.size();
  }
  EXPECT_EQ(scheduler.state().cached_tokens, cached);
  EXPECT_EQ(scheduler.state().prompt_tokens, all);
  EXPECT_EQ(scheduler.state().failed, 0u);
  for (int i = 0; i < 5; ++i)
    std::cout << name(static_cast<PromptReport::Reason>(i)) << ' ' << reasons[i] << ", ";
  std::cout << cached << " of " << scheduler.state().prompt_tokens << " tokens cached\n";
}

// Each turn computes what is new, the answer before it and less than a block more.
TEST_P(Conversations, ThatGrowAreReadOnce) {
  Scheduler scheduler(engine_, {.parallel = 2, .context = kContext});
  Ids prompt;
  std::int64_t before = 0;  // tokens of the prompt before
  while (prompt.size() < 600) {
    const std::int64_t kept = before;
    add_tokens(prompt, 1 + below(100));
    Request request = request_for(prompt);
    request.cache_salt = {};
    const RequestResult result = scheduler.run(request);
    EXPECT_GE(result.prompt.cached, kept / 64 * 64 - (kept == result.prompt.tokens ? 64 : 0));
    EXPECT_GE(result.prompt.common, kept);
    before = result.prompt.tokens;
    prompt.insert(prompt.end(), result.generated.ids.begin(), result.generated.ids.end());
  }
  // An edit of the last message.
  Request edited = request_for(prompt);
  edited.cache_salt = {};
  edited.prompt.resize(static_cast<std::size_t>(before));
  edited.prompt.back() ^= 1;
  const RequestResult result = scheduler.run(edited);
  EXPECT_EQ(result.prompt.common, before - 1);
  EXPECT_EQ(result.generated.ids, alone(edited));
}

// What several ask at once is read once.
TEST_P(Conversations, ThatBeginAtOnceShareTheirBeginning) {
  Scheduler scheduler(engine_, {.parallel = 4, .context = kContext});
  Ids prompt;
  add_tokens(prompt, 700);
  std::vector<Request> requests;
  std::vector<std::future<RequestResult>> results;
  for (int i = 0; i < 4; ++i) {
    Ids own = prompt;
    add_tokens(own, 5);
    requests.push_back(request_for(own));
    requests.back().cache_salt = {};
  }
  for (const Request& request : requests)
    results.push_back(std::async(std::launch::async, [&] { return scheduler.run(request); }));
  std::int64_t cached = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const RequestResult result = results[i].get();
    cached += result.prompt.cached;
    EXPECT_EQ(result.generated.ids, alone(requests[i]));
  }
  EXPECT_GE(cached, 3 * 640);
}

INSTANTIATE_TEST_SUITE_P(Models, Conversations,
                         ::testing::Values(Case{"cpu", "delta-story", 16, 3}, Case{"cpu", "qwen3_next"},
                                           Case{"cpu", "deepseek_v3"}, Case{"cpu", "qwen3_moe", 4},
                                           Case{"cpu", "mlx-qwen3_5_moe-4bit", 4},
                                           Case{"reference", "qwen3_5", 16, 5}, Case{"cuda", "delta-story"},
                                           Case{"cuda", "qwen3_next"}, Case{"cuda", "latent-story", 4}),
                         conversation_name);

TEST(Remembering, CanBeSwitchedOff) {
  const auto engine = Engine::load(test_data() + "/models/qwen3_next", {.backend = "cpu", .threads = 1});
  Scheduler scheduler(engine, {.parallel = 1, .context = 512, .remember_prompts = false});
  Request request;
  request.prompt.assign(200, 3);
  request.options.max_tokens = 2;
  for (int i = 0; i < 2; ++i) {
    const PromptReport report = scheduler.run(request).prompt;
    EXPECT_EQ(report.cached, 0);
    EXPECT_EQ(name(report.reason), "off");
  }
}

// A sequence that needs all pages there are takes them.
TEST(Remembering, NeverStandsInTheWay) {
  for (const char* model : {"qwen3_next", "qwen3_moe"}) {
    const auto engine = Engine::load(test_data() + "/models/" + model,
                                     {.backend = "cpu", .threads = 1, .prefill_chunk = 128});
    Scheduler scheduler(engine, {.parallel = 1, .context = 512, .state_spacing = 64});
    for (const std::size_t length : {400, 500, 100, 512, 511, 400}) {
      Request request;
      for (std::size_t i = 0; i < length; ++i)
        request.prompt.push_back(static_cast<std::int32_t>((i * i + length) % 100));
      request.options.max_tokens = 100;
      request.options.ignore_stop_ids = true;
      EXPECT_EQ(scheduler.run(request).generated.ids,
                generate(*engine->new_session(512), request.prompt, request.options).ids);
    }
  }
}

// Rows and states that had to leave their places come back from the host's memory.
TEST(Remembering, FindsInMemoryWhatHadToMakeRoom) {
  for (const char* model : {"qwen3_next", "deepseek_v3"}) {
    const auto engine = load_model(model, {.backend = "cpu", .threads = 1, .prefill_chunk = 256});
    for (const std::uint64_t memory : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
      Scheduler scheduler(engine, {.parallel = 1,
                                   .context = 1024,
                                   .cache_memory = memory,
                                   .cache_snapshots = 2,
                                   .state_spacing = 256});
      for (const std::int32_t first : {1, 2, 1, 2}) {
        Request request;
        for (int i = 0; i < 900; ++i) request.prompt.push_back((i * i + first) % 97);
        request.options.max_tokens = 5;
        request.options.ignore_stop_ids = true;
        const RequestResult result = scheduler.run(request);
        EXPECT_EQ(result.generated.ids,
                  generate(*engine->new_session(1024), request.prompt, request.options).ids);
        if (first == 1 && scheduler.state().finished > 1 && memory > 0) {
          EXPECT_EQ(result.prompt.cached, 896);
          EXPECT_EQ(result.prompt.from_host, 896);
        }
        EXPECT_LE(scheduler.state().memory_bytes, memory);
      }
    }
  }
}

// States are copied while a prompt is read on, and where there is no place for that it is read in parts.
TEST(Remembering, CopiesStatesOnTheWay) {
  const auto engine = load_model("qwen3_next", {.backend = "cpu", .threads = 1, .prefill_chunk = 512});
  Request request;
  for (int i = 0; i < 1000; ++i) request.prompt.push_back((i * i + 5) % 97);
  request.options.max_tokens = 3;
  request.options.ignore_stop_ids = true;
  const auto alone = generate(*engine->new_session(1024), request.prompt, request.options).ids;
  for (const std::int64_t snapshots : {0, 1, 3, 64}) {
    Scheduler scheduler(engine,
                        {.parallel = 2, .context = 1024, .cache_snapshots = snapshots, .state_spacing = 64});
    EXPECT_EQ(scheduler.options().cache_snapshots, snapshots);
    EXPECT_EQ(scheduler.run(request).generated.ids, alone);
    for (const std::size_t same : {900, 64, 511, 512, 129}) {
      Request edited = request;
      edited.prompt[same] ^= 1;
      const RequestResult result = scheduler.run(edited);
      EXPECT_EQ(result.prompt.cached, static_cast<std::int64_t>(same) / 64 * 64) << snapshots << " snapshots";
      EXPECT_EQ(result.generated.ids,
                generate(*engine->new_session(1024), edited.prompt, edited.options).ids);
    }
  }
}

TEST(Remembering, TakesTheBytesThatWereGiven) {
  const auto engine = load_model("qwen3_next", {.backend = "cpu", .threads = 1});
  const auto pages = [&](std::uint64_t bytes) {
    const SchedulerOptions settled =
        Scheduler(engine, {.parallel = 4, .context = 1024, .cache_vram = bytes, .cache_snapshots = 2})
            .options();
    EXPECT_EQ(settled.cache_snapshots, 2);
    return settled.cache_tokens / 256;
  };
  EXPECT_EQ(pages(1), 4);         // a context's
  EXPECT_EQ(pages(1 << 30), 16);  // all sequences'
  const std::uint64_t states = 2 * engine->summary().state_bytes;
  const std::uint64_t page = engine->summary().cache_bytes_per_position * 256;
  EXPECT_EQ(pages(states + 7 * page), 7);
  EXPECT_EQ(pages(states + 8 * page - 1), 7);
  expect_error(ErrorKind::input, {"tokens or in bytes"}, [&] {
    Scheduler(engine, {.parallel = 1, .context = 512, .cache_tokens = 512, .cache_vram = 1 << 20});
  });
}

TEST(Remembering, KeepsSaltsApart) {
  const auto engine = Engine::load(test_data() + "/models/qwen3_next", {.backend = "cpu", .threads = 1});
  Scheduler scheduler(engine, {.parallel = 4, .context = 512});
  Request request;
  request.prompt.assign(200, 3);
  request.options.max_tokens = 2;
  for (const auto& [salt, cached] : {std::pair("a", 0), std::pair("b", 0), std::pair("a", 192)}) {
    request.cache_salt = salt;
    const PromptReport report = scheduler.run(request).prompt;
    EXPECT_EQ(report.cached, cached);
    EXPECT_EQ(name(report.reason), cached > 0 ? "end" : "differs");
  }
}

}  // namespace
}  // namespace sluice
