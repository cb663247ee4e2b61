// A story in F32 is the same on every instruction set: what the documentation shows is what a reader gets.
#include <gtest/gtest.h>

#include "sluice/error.h"
#include "sluice/session.h"
#include "source_dir.h"
#include "temporary_folder.h"

namespace sluice {
namespace {

// Empty where this machine lacks the instruction set.
std::string story(const std::string& model, const std::string& isa) {
  EngineOptions options;
  options.backend = "cpu";
  options.threads = 2;
  options.isa = isa;
  options.exact = true;
  std::shared_ptr<Engine> engine;
  try {
    engine = Engine::load(source_dir() + "/models/" + model, options);
  } catch (const Error&) {
    return "";
  }
  const auto session = engine->new_session(256);
  GenerateOptions generation;
  generation.max_tokens = 120;
  generation.sampling = {.temperature = 0.7, .top_k = 40, .top_p = 0.9, .seed = 3};
  return generate(*session, engine->encode("Once upon a time", true), generation).text;
}

class ExactStory : public ::testing::TestWithParam<const char*> {};

TEST_P(ExactStory, IsTheSameOnEveryInstructionSet) {
  const std::string best = story(GetParam(), "");
  // Written on AVX-512; processors of other kinds find it here.
  EXPECT_EQ(best, read_all(test_data() + "/stories/exact-" + GetParam() + ".txt"));
  EXPECT_FALSE(best.empty());
  int others = 0;
  for (const char* isa : {"sse4", "avx2", "avxvnni", "avx512", "amx", "neon", "dotprod", "i8mm"}) {
    const std::string other = story(GetParam(), isa);
    if (other.empty()) continue;
    EXPECT_EQ(other, best) << isa;
    ++others;
  }
  EXPECT_GT(others, 0);
}

INSTANTIATE_TEST_SUITE_P(Stories, ExactStory, ::testing::Values("delta-story", "latent-story"),
                         [](const auto& info) { return std::string(info.param).substr(0, 5); });

}  // namespace
}  // namespace sluice
