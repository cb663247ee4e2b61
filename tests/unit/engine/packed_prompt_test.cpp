// Sequences over packed caches of every width: how a prompt is divided, and which other sequences are in a
// pass, does not affect their bits.
#include <gtest/gtest.h>

#include "engine/executor.h"
#include "load_model.h"
#include "sluice/session.h"

namespace sluice {
namespace {

struct Case {
  const char* model;
  int key_bits;
  int value_bits;
};

class PackedPrompt : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t kPrompt = 300;
  static constexpr std::size_t kSteps = 3;

  static std::shared_ptr<Engine> load(std::int64_t chunk) {
    return load_model(GetParam().model, {.backend = "cpu",
                                         .threads = 2,
                                         .prefill_chunk = chunk,
                                         .key_bits = GetParam().key_bits,
                                         .value_bits = GetParam().value_bits});
  }
  // Logits after a prompt that is divided into calls at these cuts, and after each of some steps.
  std::vector<float> alone(std::int64_t chunk, std::span<const std::size_t> cuts) {
    const auto session = load(chunk)->new_session(320);
    std::vector<float> seen;
    const auto see = [&] { seen.insert(seen.end(), session->logits().begin(), session->logits().end()); };
    std::size_t begin = 0;
    for (const std::size_t end : cuts) {
      session->extend(std::span(tokens_).subspan(begin, end - begin));
      begin = end;
    }
    session->extend(std::span(tokens_).subspan(begin, kPrompt - begin));
    see();
    for (std::size_t i = 0; i < kSteps; ++i) {
      session->step(tokens_[kPrompt + i]);
      see();
    }
    return seen;
  }
  // The same next to two other sequences in every pass.
  std::vector<float> beside_others() {
    const auto engine = load(1024);
    engine::Executor& executor = *engine::core(*engine).executor;
    const auto group = executor.reserve({3, 320});
    const engine::Executor::Slot slots[] = {executor.open(group), executor.open(group), executor.open(group)};
    const std::size_t lengths[] = {77, kPrompt, 190};
    std::vector<float> seen;
    const auto hear = [&](std::size_t i, std::span<const float> logits) {
      if (i == 1) seen.insert(seen.end(), logits.begin(), logits.end());
    };
    const auto batch = [&](std::size_t step, std::size_t count) {
      std::vector<engine::Executor::SlotTokens> parts;
      for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t past = count == 0 ? 0 : lengths[i] + step;
        parts.push_back({&slots[i], static_cast<std::int64_t>(past),
                         std::span(tokens_).subspan(past, count == 0 ? lengths[i] : count)});
      }
      return parts;
    };
    executor.prefill(batch(0, 0), hear);
    for (std::size_t i = 0; i < kSteps; ++i) executor.decode(batch(i, 1), hear);
    return seen;
  }

  const std::vector<std::int32_t> tokens_ = [] {
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < kPrompt + kSteps; ++i)
      tokens.push_back(static_cast<std::int32_t>(i * 2654435761 % 4000));
    return tokens;
  }();
};

TEST_P(PackedPrompt, GivesTheSameBitsHoweverItIsCut) {
  const std::vector<float> whole = alone(0, {});
  EXPECT_EQ(alone(64, {}), whole) << "chunks of one block";
  EXPECT_EQ(alone(192, {}), whole) << "chunks of three blocks";
  const std::size_t cuts[] = {64, 256};
  EXPECT_EQ(alone(128, cuts), whole) << "several calls";
}

TEST_P(PackedPrompt, GivesTheSameBitsAmongOthers) {
  EXPECT_EQ(beside_others(), alone(64, {}));
}

std::vector<Case> every_width() {
  std::vector<Case> cases{{"delta-story", 8, 3}, {"delta-story", 16, 4}, {"delta-story", 4, 16}};
  for (const char* model : {"delta-story", "latent-story"})
    for (const int bits : {2, 3, 4, 5, 6, 8}) cases.push_back({model, bits, bits});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, PackedPrompt, ::testing::ValuesIn(every_width()), [](const auto& info) {
  const Case& one = info.param;
  return std::string(one.model).substr(0, 5) + "_" + std::to_string(one.key_bits) + "_" +
         std::to_string(one.value_bits);
});

}  // namespace
}  // namespace sluice
