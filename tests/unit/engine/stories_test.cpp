// The greedy stories of the bundled models, compared with transformers in float32 on the same weights
// (tools/golden/stories.py) and between backends.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sampling/argmax.h"
#include "sluice/session.h"
#include "source_dir.h"

namespace sluice {
namespace {

struct Story {
  std::string prompt;
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> greedy;
};

std::vector<Story> golden_stories(const std::string& model) {
  std::ifstream file(test_data() + "/stories/" + model + ".json");
  std::vector<Story> stories;
  for (const auto& story : nlohmann::json::parse(file))
    stories.push_back({story["prompt"], story["ids"], story["greedy"]});
  return stories;
}

class BundledModel : public ::testing::TestWithParam<const char*> {
 protected:
  static std::shared_ptr<Engine> load(const char* backend) {
    return Engine::load(source_dir() + "/models/" + std::string(GetParam()),
                        {.backend = backend, .threads = 1, .exact = true});
  }
  static std::vector<std::int32_t> continue_greedily(Engine& engine, std::span<const std::int32_t> ids,
                                                     std::size_t count) {
    const auto session = engine.new_session(static_cast<std::int64_t>(ids.size() + count));
    session->extend(ids);
    std::vector<std::int32_t> chosen{sampling::argmax(session->logits())};
    while (chosen.size() < count) {
      session->extend(std::span(&chosen.back(), 1));
      chosen.push_back(sampling::argmax(session->logits()));
    }
    return chosen;
  }
};

TEST_P(BundledModel, Chooses200TokensAsTransformersDoes) {
  const auto engine = load("cpu");
  const std::vector<Story> stories = golden_stories(GetParam());
  ASSERT_GE(stories.size(), 3u);
  for (const Story& story : stories) {
    SCOPED_TRACE(story.prompt);
    ASSERT_EQ(story.greedy.size(), 200u);
    EXPECT_EQ(engine->encode(story.prompt), story.ids);
    EXPECT_EQ(continue_greedily(*engine, story.ids, story.greedy.size()), story.greedy);
  }
}

// The first of them: the reference takes a tenth of a second per token.
TEST_P(BundledModel, ReferenceChoosesTheSameTokens) {
  Story story = golden_stories(GetParam()).front();
  story.greedy.resize(64);
  EXPECT_EQ(continue_greedily(*load("reference"), story.ids, story.greedy.size()), story.greedy);
}

INSTANTIATE_TEST_SUITE_P(Stories, BundledModel, ::testing::Values("delta-story", "latent-story"),
                         [](const auto& info) {
                           return std::string(info.param).substr(0, std::string(info.param).find('-'));
                         });

}  // namespace
}  // namespace sluice
