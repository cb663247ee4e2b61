// Conversations that grow, are edited, fork and return: caching saves work and changes no token.
#include "conversations.h"

#include <future>

#include "expect_error.h"
#include "temporary_folder.h"

namespace sluice {
namespace {

using Case = ConversationCase;

void add_some(Ids& to, int count) {
  for (int i = 0; i < count; ++i) to.push_back((i * i + 11) % 89);
}

TEST_P(Conversations, AreAnsweredAsWithoutACache) {
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
  // Whatever was drawn above, the prompt just read is cached.
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

// Each turn computes what is new, the previous answer and less than a block more.
TEST_P(Conversations, ThatGrowAreReadOnce) {
  Scheduler scheduler(engine_, {.parallel = 2, .context = kContext});
  Ids prompt;
  std::int64_t before = 0;  // tokens of the previous prompt
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

// A common prefix of concurrent requests is computed once.
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

// The same prompt several times at once is computed once, to its last token, and answered as often.
TEST_P(Conversations, ThatAreTheSameAreReadOnce) {
  Scheduler scheduler(engine_, {.parallel = 5, .context = kContext});
  for (const int length : {5, 64, 100, 700}) {
    Ids prompt;
    add_tokens(prompt, length);
    std::vector<Request> requests;
    std::vector<std::promise<RequestResult>> done(4);
    // The others arrive while this request's callback blocks the scheduler, so none begins before all are
    // there.
    std::promise<void> kept;
    std::promise<void> submitted;
    std::shared_future<void> all_there = submitted.get_future();
    Request first;
    add_tokens(first.prompt, 3);
    first.options.max_tokens = 1;
    scheduler.submit(first, {.done = [&kept, all_there](const RequestResult&) {
                       kept.set_value();
                       all_there.wait();
                     }});
    kept.get_future().wait();
    for (std::size_t i = 0; i < done.size(); ++i) {
      requests.push_back(request_for(prompt));
      requests.back().cache_salt = {};
      scheduler.submit(requests.back(),
                       {.done = [&done, i](const RequestResult& result) { done[i].set_value(result); }});
    }
    submitted.set_value();
    std::int64_t computed = 0;
    for (std::size_t i = 0; i < done.size(); ++i) {
      const RequestResult result = done[i].get_future().get();
      ASSERT_FALSE(result.error);
      EXPECT_EQ(result.generated.ids, alone(requests[i])) << length << " tokens, request " << i;
      computed += result.prompt.tokens - result.prompt.cached - result.prompt.shared;
    }
    EXPECT_EQ(computed, length);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Conversations,
                         ::testing::Values(Case{"cpu", "delta-story", 16, 3}, Case{"cpu", "qwen3_next"},
                                           Case{"cpu", "deepseek_v3"}, Case{"cpu", "qwen3_moe", 4},
                                           Case{"cpu", "mlx-qwen3_5_moe-4bit", 4},
                                           Case{"reference", "qwen3_5", 16, 5}, Case{"cuda", "delta-story"},
                                           Case{"cuda", "qwen3_next"}, Case{"cuda", "latent-story", 4}),
                         model_case_name<ConversationCase>);

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

// A sequence that needs all pages gets them.
TEST(Remembering, NeverBlocksASequence) {
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

// Nor if the sequence's own pages continue after a page that caches the same beginning: that one is evicted,
// although later rows are in use.
TEST(Remembering, NeverBlocksItsOwnPrompt) {
  const auto engine = load_model("qwen3_next", {.backend = "cpu", .threads = 1, .prefill_chunk = 128});
  Scheduler scheduler(engine, {.parallel = 1,
                               .context = 1024,
                               .cache_tokens = 1024,
                               .cache_memory = 0,
                               .cache_snapshots = 1,
                               .state_spacing = 512});
  const auto run = [&](std::int32_t first, int length) {
    Request request;
    for (int i = 0; i < length; ++i) request.prompt.push_back((i * i + first) % 97);
    request.options.max_tokens = 3;
    request.options.ignore_stop_ids = true;
    request.timeout_seconds = 120;
    const RequestResult result = scheduler.run(request);
    EXPECT_FALSE(result.error) << length << " tokens";
    EXPECT_EQ(result.generated.ids,
              generate(*engine->new_session(1024), request.prompt, request.options).ids);
  };
  run(1, 300);
  run(2, 100);  // takes the only place for a state, so that the page before is useless without it
  run(1, 900);
}

// Evicted rows and states are restored from host memory.
TEST(Remembering, FindsEvictedPrefixesInMemory) {
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

// The text with which a template opens the answer may differ the next time, or be missing.
TEST(Remembering, ContinuesBeforeTheOpeningOfAnAnswer) {
  const auto engine = load_model("qwen3_next", {.backend = "cpu", .threads = 1, .prefill_chunk = 512});
  for (const std::size_t length : {640u, 643u, 654u, 660u}) {
    Scheduler scheduler(engine, {.parallel = 1, .context = 1024, .state_spacing = 1024});
    Request request;
    for (std::size_t i = 0; i < length; ++i)
      request.prompt.push_back(static_cast<std::int32_t>((i * i + length) % 97));
    request.options.max_tokens = 2;
    request.options.ignore_stop_ids = true;
    scheduler.run(request);
    const std::size_t opening = length - 16;
    for (std::size_t i = opening; i < length; ++i) request.prompt[i] ^= 1;
    add_some(request.prompt, 100);
    const RequestResult result = scheduler.run(request);
    EXPECT_EQ(result.prompt.cached, static_cast<std::int64_t>(opening / 64 * 64)) << length << " tokens";
    EXPECT_EQ(result.generated.ids,
              generate(*engine->new_session(1024), request.prompt, request.options).ids);
  }
}

// States are copied while a prompt is computed, or the prompt is divided if there is no place for that.
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

// No one waits for caching: the first token is reported before anything is cached.
TEST(Remembering, CachesAfterTheFirstTokenIsReported) {
  const auto engine = load_model("qwen3_next", {.backend = "cpu", .threads = 1});
  Scheduler scheduler(engine, {.parallel = 1, .context = 512, .cache_snapshots = 0});
  Request request;
  for (int i = 0; i < 64; ++i) request.prompt.push_back((i * i + 5) % 97);
  request.options.max_tokens = 2;
  request.options.ignore_stop_ids = true;
  std::vector<std::uint64_t> bytes;
  std::promise<void> done;
  scheduler.submit(request,
                   {.token = [&](const GeneratedToken&) { bytes.push_back(scheduler.state().memory_bytes); },
                    .done = [&](const RequestResult&) { done.set_value(); }});
  done.get_future().wait();
  ASSERT_EQ(bytes.size(), 2u);
  EXPECT_EQ(bytes[0], 0u);
  EXPECT_EQ(scheduler.state().memory_bytes, engine->summary().state_bytes);
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
  EXPECT_EQ(pages(1), 4);         // those of one context
  EXPECT_EQ(pages(1 << 30), 16);  // those of all sequences
  const std::uint64_t states = 2 * engine->summary().state_bytes;
  const std::uint64_t page = engine->summary().cache_bytes_per_position * 256;
  EXPECT_EQ(pages(states + 7 * page), 7);
  EXPECT_EQ(pages(states + 8 * page - 1), 7);
  expect_error(ErrorKind::input, {"tokens or in bytes"}, [&] {
    Scheduler(engine, {.parallel = 1, .context = 512, .cache_tokens = 512, .cache_vram = 1 << 20});
  });
}

// One limit applies to everything, including what is evicted from pages.
TEST(Remembering, StaysWithinTheEnginesMemory) {
  const std::string model = source_dir() + "/models/delta-story";
  constexpr std::uint64_t kLimit = 120'000'000;
  const auto limited = Engine::load(model, {.backend = "cpu", .threads = 1, .memory = kLimit});
  const SchedulerOptions options{.parallel = 1, .context = 1024};
  const std::uint64_t room = Scheduler(limited, options).options().cache_memory;
  EXPECT_GT(room, 0u);
  EXPECT_LT(room, kLimit / 2);
  EXPECT_EQ(Scheduler(limited, {.parallel = 1, .context = 1024, .cache_memory = 1000}).options().cache_memory,
            1000u);
  const auto free = Engine::load(model, {.backend = "cpu", .threads = 1});
  EXPECT_EQ(Scheduler(free, options).options().cache_memory, options.cache_memory);
}

// With reuse_decoded, a prompt continues from an answer as it was generated: with the bits of a session that
// generated it and continues.
TEST(Remembering, ContinuesFromAnswersOnRequest) {
  for (const char* model : {"qwen3_next", "deepseek_v3"}) {
    const auto engine = load_model(model, {.backend = "cpu", .threads = 1});
    const TemporaryFolder folder;
    Request request;
    for (int i = 0; i < 100; ++i) request.prompt.push_back((i * i + 5) % 97);
    request.options.max_tokens = 93;  // the last one is not computed: 192 in total
    request.options.ignore_stop_ids = true;
    const auto answer = generate(*engine->new_session(512), request.prompt, request.options).ids;
    // A session appends the last token, too: here that is the last one computed above.
    const auto session = engine->new_session(512);
    Request shorter = request;
    shorter.options.max_tokens = 92;
    generate(*session, shorter.prompt, shorter.options);
    Request next = request;
    next.prompt.insert(next.prompt.end(), answer.begin(), answer.end());
    next.prompt.insert(next.prompt.end(), {1, 2, 3});
    next.options.max_tokens = 5;
    const auto behind = generate(*session, std::span(next.prompt).subspan(192), next.options).ids;
    for (const bool reuse : {false, true}) {
      Scheduler scheduler(
          engine, {.parallel = 1, .context = 512, .cache_folder = folder.path(), .reuse_decoded = reuse});
      scheduler.forget_prompts();
      EXPECT_EQ(scheduler.run(request).generated.ids, answer);
      const RequestResult result = scheduler.run(next);
      EXPECT_EQ(result.prompt.cached, reuse ? 192 : 64) << model;
      EXPECT_EQ(result.prompt.decoded, reuse ? 128 : 0) << model;
      if (reuse) {
        EXPECT_EQ(result.generated.ids, behind) << model;
      }
      // What is computed after it is marked, too.
      add_some(next.prompt, 64);
      const RequestResult further = scheduler.run(next);
      EXPECT_EQ(further.prompt.decoded, further.prompt.cached - (reuse ? 64 : further.prompt.cached));
      next.prompt.resize(196);
    }
    // Files hold only what was computed as prompts.
    Scheduler later(engine, {.parallel = 1, .context = 512, .cache_folder = folder.path()});
    const RequestResult result = later.run(next);
    EXPECT_EQ(result.prompt.cached, 64) << model;
    EXPECT_EQ(result.generated.ids, generate(*engine->new_session(512), next.prompt, next.options).ids);
  }
}

// A key's requests find their cached prefixes, whatever others request meanwhile, and none waits for another
// key's.
TEST(Remembering, SeparatesKeysAndTheirShares) {
  const auto engine = load_model("qwen3_next", {.backend = "cpu", .threads = 1});
  const TemporaryFolder folder;
  const ModelSummary& model = engine->summary();
  const std::uint64_t block =
      model.state_bytes + 64 * model.cache_bytes_per_position;  // and the state after it
  Scheduler scheduler(engine, {.parallel = 2,
                               .context = 512,
                               .cache_memory = 12 * block,
                               .state_spacing = 64,
                               .cache_folder = folder.path(),
                               .cache_folder_bytes = 12 * (block + 4096),
                               .cache_keys = 2});
  const auto ask = [&](const char* key, std::int32_t first) {
    Request request;
    for (int i = 0; i < 200; ++i) request.prompt.push_back((i * i + first) % 97);
    request.options.max_tokens = 1;
    request.key = key;
    return scheduler.run(request).prompt;
  };
  EXPECT_EQ(ask("a", 1).cached, 0);
  EXPECT_EQ(ask("b", 1).cached, 0);  // though it is the same prompt
  for (std::int32_t other = 2; other < 40; ++other) EXPECT_EQ(ask("b", other).cached, 0);
  EXPECT_EQ(ask("a", 1).cached, 192);
  EXPECT_EQ(name(ask("b", 1).reason), "evicted");
  EXPECT_FALSE(scheduler.remembered("a", "").empty());
  EXPECT_TRUE(scheduler.remembered("a", "salted").empty());
  EXPECT_TRUE(scheduler.remembered("c", "").empty());
}

// Two keys that request the same at the same time: each computes its own.
TEST(Remembering, WaitsForNoOtherKey) {
  const auto engine = load_model("qwen3_next", {.backend = "cpu", .threads = 1});
  for (const std::int64_t keys : {0, 2}) {
    Scheduler scheduler(engine, {.parallel = 3, .context = 512, .cache_keys = keys});
    std::vector<std::promise<RequestResult>> done(2);
    std::promise<void> submitted;
    Request first;
    first.prompt = {1, 2, 3};
    first.options.max_tokens = 1;
    scheduler.submit(first,
                     {.done = [all = submitted.get_future().share()](const RequestResult&) { all.wait(); }});
    for (std::size_t i = 0; i < done.size(); ++i) {
      Request request;
      request.prompt.assign(300, 5);
      request.options.max_tokens = 1;
      request.key = i == 0 ? "a" : "b";
      scheduler.submit(request,
                       {.done = [&done, i](const RequestResult& result) { done[i].set_value(result); }});
    }
    submitted.set_value();
    std::int64_t computed = 0;
    for (auto& one : done) {
      const PromptReport report = one.get_future().get().prompt;
      computed += report.tokens - report.cached - report.shared;
    }
    EXPECT_EQ(computed, keys == 0 ? 300 : 600);
  }
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
