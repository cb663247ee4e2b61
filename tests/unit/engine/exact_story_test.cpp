// A story in F32 is the same on every instruction set, so readers can reproduce the documentation.
#include <gtest/gtest.h>

#include "isas_here.h"
#include "sluice/session.h"
#include "source_dir.h"
#include "temporary_folder.h"

namespace sluice {
namespace {

std::string story(const std::string& model, const std::string& isa) {
  EngineOptions options;
  options.backend = "cpu";
  options.threads = 2;
  options.isa = isa;
  options.exact = true;
  const auto engine = Engine::load(source_dir() + "/models/" + model, options);
  const auto session = engine->new_session(256);
  GenerateOptions generation;
  generation.max_tokens = 120;
  generation.sampling = {.temperature = 0.7, .top_k = 40, .top_p = 0.9, .seed = 3};
  return generate(*session, engine->encode("Once upon a time", true), generation).text;
}

class ExactStory : public ::testing::TestWithParam<const char*> {};

TEST_P(ExactStory, IsTheSameOnEveryInstructionSet) {
  const std::string best = story(GetParam(), "");
  // Written on AVX-512; other processors compare with it.
  EXPECT_EQ(best, read_all(test_data() + "/stories/exact-" + GetParam() + ".txt"));
  EXPECT_FALSE(best.empty());
  for (const std::string& isa : isas_here()) EXPECT_EQ(story(GetParam(), isa), best) << isa;
}

INSTANTIATE_TEST_SUITE_P(Stories, ExactStory, ::testing::Values("delta-story", "latent-story"),
                         [](const auto& info) { return std::string(info.param).substr(0, 5); });

}  // namespace
}  // namespace sluice
