// Prompts over packed caches: what a prompt is cut into does not show in its bits.
#include <gtest/gtest.h>

#include <filesystem>

#include "sluice/session.h"
#include "source_dir.h"

namespace sluice {
namespace {

std::vector<float> logits_of(const std::string& model, std::int64_t chunk,
                             std::span<const std::size_t> cuts) {
  const auto engine =
      Engine::load(std::filesystem::path(source_dir() + "/models") / model,
                   {.backend = "cpu", .threads = 2, .prefill_chunk = chunk, .key_bits = 4, .value_bits = 4});
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < 300; ++i) tokens.push_back(static_cast<std::int32_t>(i * 2654435761 % 4000));
  const auto session = engine->new_session(320);
  std::size_t begin = 0;
  for (const std::size_t end : cuts) {
    session->extend(std::span(tokens).subspan(begin, end - begin));
    begin = end;
  }
  session->extend(std::span(tokens).subspan(begin));
  return {session->logits().begin(), session->logits().end()};
}

class PackedPrompt : public ::testing::TestWithParam<const char*> {};

TEST_P(PackedPrompt, GivesTheSameBitsHoweverItIsCut) {
  const std::vector<float> whole = logits_of(GetParam(), 0, {});
  EXPECT_EQ(logits_of(GetParam(), 64, {}), whole) << "chunks of one block";
  EXPECT_EQ(logits_of(GetParam(), 192, {}), whole) << "chunks of three blocks";
  const std::size_t cuts[] = {64, 256};
  EXPECT_EQ(logits_of(GetParam(), 128, cuts), whole) << "several calls";
}

INSTANTIATE_TEST_SUITE_P(Models, PackedPrompt, ::testing::Values("delta-story", "latent-story"),
                         [](const auto& info) { return std::string(info.param).substr(0, 5); });

}  // namespace
}  // namespace sluice
