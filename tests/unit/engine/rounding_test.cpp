// The effect of rounding activations to integers, the CPU's default, on the bundled models.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sluice/perplexity.h"
#include "sluice/session.h"
#include "source_dir.h"

namespace sluice {
namespace {

class Rounding : public ::testing::TestWithParam<const char*> {
 protected:
  static std::shared_ptr<Engine> load(bool exact) {
    return Engine::load(source_dir() + "/models/" + std::string(GetParam()),
                        {.backend = "cpu", .threads = 2, .exact = exact});
  }
  // Greedy stories, as ids.
  static std::vector<std::vector<std::int32_t>> stories() {
    std::ifstream file(test_data() + "/stories/" + std::string(GetParam()) + ".json");
    std::vector<std::vector<std::int32_t>> result;
    for (const auto& story : nlohmann::json::parse(file)) {
      result.push_back(story["ids"]);
      const std::vector<std::int32_t> greedy = story["greedy"];
      result.back().insert(result.back().end(), greedy.begin(), greedy.end());
    }
    return result;
  }
};

TEST_P(Rounding, KeepsLogitsWithinFiveThousandths) {
  const auto exact = load(true);
  const auto rounded = load(false);
  double difference = 0;
  double size = 0;
  for (const std::vector<std::int32_t>& ids : stories()) {
    const auto capacity = static_cast<std::int64_t>(ids.size());
    std::vector<float> want;
    exact->new_session(capacity)->extend(ids, [&](std::int64_t, std::span<const float> row) {
      want.insert(want.end(), row.begin(), row.end());
    });
    std::size_t at = 0;
    rounded->new_session(capacity)->extend(ids, [&](std::int64_t, std::span<const float> row) {
      for (const float have : row) {
        difference += std::pow(have - want[at], 2);
        size += std::pow(want[at++], 2);
      }
    });
    ASSERT_EQ(at, want.size());
  }
  EXPECT_GT(difference, 0);  // otherwise nothing was rounded
  EXPECT_LT(std::sqrt(difference / size), 5e-3);
}

TEST_P(Rounding, KeepsPerplexityWithinThreeThousandths) {
  const auto exact = load(true);
  std::string text;
  for (const std::vector<std::int32_t>& ids : stories()) text += exact->decode(ids) + "\n<|endoftext|>\n";
  const double want = measure_perplexity(*exact, text, {.context = 512}).nats_per_token;
  const double have = measure_perplexity(*load(false), text, {.context = 512}).nats_per_token;
  EXPECT_NEAR(std::exp(have) / std::exp(want), 1, 3e-3);
}

INSTANTIATE_TEST_SUITE_P(Stories, Rounding, ::testing::Values("delta-story", "latent-story"),
                         [](const auto& info) {
                           return std::string(info.param).substr(0, std::string(info.param).find('-'));
                         });

}  // namespace
}  // namespace sluice
