// Packed caches on the GPU: compared with the CPU's, and with themselves after a rewind.
#include <gtest/gtest.h>

#include <filesystem>

#include "cuda_device.h"
#include "golden_model.h"
#include "sluice/session.h"
#include "source_dir.h"

namespace sluice {
namespace {

struct Bits {
  int keys;
  int values;
};

class CudaPackedCache : public ::testing::TestWithParam<std::tuple<std::string, Bits>> {
 protected:
  void SetUp() override { SLUICE_NEED_CUDA(); }
  static std::shared_ptr<Engine> load(const char* backend, bool exact, std::int64_t chunk = 0) {
    const auto [story, bits] = GetParam();
    return Engine::load(std::filesystem::path(source_dir() + "/models") / story, {.backend = backend,
                                                                                  .threads = 4,
                                                                                  .prefill_chunk = chunk,
                                                                                  .key_bits = bits.keys,
                                                                                  .value_bits = bits.values,
                                                                                  .exact = exact});
  }
};

std::vector<std::int32_t> some_tokens(std::size_t count) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<std::int32_t>(i * 2654435761 % 4000));
  return tokens;
}

std::vector<float> copy(std::span<const float> logits) {
  return {logits.begin(), logits.end()};
}

// A prompt in chunks of 64, then generated tokens by a recorded program.
std::vector<float> run(Engine& engine) {
  const std::vector<std::int32_t> tokens = some_tokens(150);
  const auto session = engine.new_session(160);
  session->extend(std::span(tokens).first(130));
  for (std::size_t i = 130; i < tokens.size(); ++i) session->step(tokens[i]);
  return copy(session->logits());
}

TEST_P(CudaPackedCache, AgreesWithTheCpu) {
  const std::vector<float> want = run(*load("cpu", true, 64));
  // After the rounding of earlier layers, a value near a boundary may get another code.
  EXPECT_LT(relative_difference(run(*load("cuda", true, 64)), want), 0.02);
  EXPECT_LT(relative_difference(run(*load("cuda", false, 64)), want), 0.1);
}

TEST_P(CudaPackedCache, SnapshotsAndMarksGiveTheSameBits) {
  const std::vector<std::int32_t> tokens = some_tokens(90);
  for (const bool exact : {true, false}) {
    const auto engine = load("cuda", exact);
    const auto steps = [&](Session& session) {
      for (std::size_t i = 60; i < tokens.size(); ++i) session.step(tokens[i]);
      return copy(session.logits());
    };
    const auto session = engine->new_session(96);
    session->extend(std::span(tokens).first(60));
    const Snapshot snapshot = session->snapshot();
    const Snapshot mark = session->mark();
    const std::vector<float> want = steps(*session);
    session->rewind(mark);
    EXPECT_EQ(steps(*session), want);
    const auto other = engine->new_session(200);
    other->extend(some_tokens(120));
    other->restore(snapshot);
    EXPECT_EQ(steps(*other), want);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CudaPackedCache,
                         ::testing::Combine(::testing::Values("delta-story", "latent-story"),
                                            ::testing::Values(Bits{4, 4}, Bits{8, 8}, Bits{8, 4}, Bits{8, 16},
                                                              Bits{3, 3})),
                         [](const auto& info) {
                           const Bits bits = std::get<1>(info.param);
                           return std::get<0>(info.param).substr(0, 5) + "_" + std::to_string(bits.keys) +
                                  "_" + std::to_string(bits.values);
                         });

}  // namespace
}  // namespace sluice
