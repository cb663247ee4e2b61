// Nodes with consecutive layers work on different sequences at the same time.
#include <gtest/gtest.h>

#include "shared_model.h"

namespace sluice {
namespace {

// Allows every other token of the vocabulary, twelve times.
class EvenTokens final : public TokenGuide {
 public:
  bool mask(std::span<std::uint8_t> allowed) override {
    std::fill(allowed.begin(), allowed.end(), std::uint8_t{0x55});
    return true;
  }
  void accept(std::int32_t token) override {
    EXPECT_EQ(token % 2, 0);
    ++taken_;
  }
  bool finished() const override { return taken_ == 12; }

 private:
  int taken_ = 0;
};

// Prompts are short, so that each is one pass whose logits are awaited.
Request story(Engine& engine, std::size_t i) {
  Request request = story_request(engine, i);
  request.prompt.push_back(static_cast<std::int32_t>(i) + 5);
  request.options.max_tokens = 16 + static_cast<std::int64_t>(i);
  if (i % 4 == 1) request.options.guide = std::make_shared<EvenTokens>();
  return request;
}

TEST(GroupsOfSequences, AreAtAllNodesAtOnce) {
  for (const int count : {2, 3})
    for (const char* model : {"delta-story", "latent-story"}) {
      const auto seen = with_nodes(count, model, kOneThread, {}, [&](Engine& engine) {
        expect_as_alone(engine, model, {.parallel = 8, .context = 256}, 10, story);
      });
      EXPECT_GE(seen.most_underway, count);
    }
}

TEST(GroupsOfSequences, MakeRoomForOneAnother) {
  with_nodes(2, "delta-story", kOneThread, {}, [](Engine& engine) {
    expect_as_alone(engine, "delta-story", {.parallel = 8, .context = 512, .cache_tokens = 768}, 8,
                    [](Engine& own, std::size_t i) {
                      Request request = story(own, i);
                      request.priority = static_cast<int>(i % 3);
                      request.options.max_tokens = 280;  // in the second page
                      request.options.guide = {};
                      return request;
                    });
  });
}

// A sequence that ends while its token is on other nodes does not affect the others.
TEST(GroupsOfSequences, DropThoseThatEnd) {
  constexpr std::size_t kSequences = 9;
  with_nodes(3, "delta-story", kOneThread, {}, [](Engine& engine) {
    Scheduler scheduler(engine.shared_from_this(), {.parallel = 6, .context = 256});
    std::vector<RequestResult> results(kSequences);
    for (std::size_t i = 0; i < kSequences; ++i)
      scheduler.submit(story(engine, i), {.token =
                                              [i, heard = 0](const GeneratedToken&) mutable {
                                                if (++heard == 4 && i % 3 == 2)
                                                  throw std::runtime_error("nobody listens");
                                              },
                                          .done = [&, i](const RequestResult& done) { results[i] = done; }});
    scheduler.drain();
    const auto alone = load_model("delta-story", kOneThread);
    for (std::size_t i = 0; i < kSequences; ++i) {
      EXPECT_EQ(results[i].error != nullptr, i % 3 == 2) << i;
      if (i % 3 == 2) continue;
      const Request own = story(*alone, i);
      EXPECT_EQ(results[i].generated.ids, generate(*alone->new_session(256), own.prompt, own.options).ids)
          << i;
    }
  });
}

// A session steps while others' tokens are in flight.
TEST(GroupsOfSequences, LeaveSessionsAlone) {
  with_nodes(2, "delta-story", kOneThread, {}, [](Engine& engine) {
    const std::vector<std::int32_t> tokens = some_tokens(40);
    const auto alone = load_model("delta-story", kOneThread);
    const std::vector<float> want = transcript(*alone, tokens);
    Scheduler scheduler(engine.shared_from_this(), {.parallel = 4, .context = 256});
    for (std::size_t i = 0; i < 4; ++i) {
      Request request = story(engine, i);
      request.options.guide = {};
      request.options.max_tokens = 100;
      scheduler.submit(std::move(request), {});
    }
    EXPECT_TRUE(transcript(engine, tokens) == want);
    scheduler.drain();
  });
}

}  // namespace
}  // namespace sluice
