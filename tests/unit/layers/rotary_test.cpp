// Frequencies of rotary embeddings compared with those of transformers 5.23.0 (ROPE_INIT_FUNCTIONS["yarn"],
// head_dim 16).
#include "layers/rotary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "expect_error.h"

namespace sluice::layers {
namespace {

constexpr std::int64_t kHeadDim = 16;

RotaryTable read(const Json& config, double partial = 1) {
  return read_rotary(checkpoint::Config(config, "config.json"), kHeadDim, partial);
}

void expect_frequencies(const RotaryTable& table, const std::vector<double>& want) {
  ASSERT_EQ(want.size(), table.inv_freq.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(want[i], static_cast<double>(table.inv_freq[i]), 4e-7 * want[i]) << "channel " << i;
}

Json yarn(double theta, double factor, int original) {
  return {{"rope_type", "yarn"},
          {"rope_theta", theta},
          {"factor", factor},
          {"original_max_position_embeddings", original}};
}

TEST(Rotary, HasTheFrequenciesOfTheBase) {
  const RotaryTable table = read({{"rope_theta", 16}}, 0.5);  // of 8 channels: 16^(-2i/8)
  expect_frequencies(table, {1, 0.5, 0.25, 0.125});
  EXPECT_EQ(1, table.mscale);
  EXPECT_EQ(1, table.score_scale);
}

TEST(Rotary, StretchesAsTransformersDoes) {
  const RotaryTable small = read({{"rope_parameters", yarn(1e4, 4, 4096)}});
  expect_frequencies(small, {1.0, 0.316227764, 0.100000001, 0.025693506, 0.00624999963, 0.00138349656,
                             0.000250000012, 7.90569466e-05});
  EXPECT_NEAR(1.138629436111989, small.mscale, 1e-15);
  const RotaryTable large = read({{"rope_parameters", yarn(1e7, 4, 32768)}});
  expect_frequencies(large, {1.0, 0.133352146, 0.0177827943, 0.00177853031, 0.000158113893, 1.05424133e-05,
                             1.40585337e-06, 1.8747356e-07});
}

TEST(Rotary, TruncatesTheRampOnRequest) {
  Json section = yarn(1e4, 8, 2048);
  section.update({{"truncate", false}, {"beta_fast", 16}, {"beta_slow", 2}});
  const RotaryTable table = read({{"rope_parameters", section}});
  expect_frequencies(table, {1.0, 0.316227764, 0.100000001, 0.0257716179, 0.00330522214, 0.000395284733,
                             0.000125000006, 3.95284733e-05});
  EXPECT_NEAR(1.2079441541679836, table.mscale, 1e-15);
}

// DeepSeek's factors: one on cos and sin, one on the softmax's scale, (0.1 ln(40) + 1)^2.
TEST(Rotary, ScalesScoresAsDeepSeekDoes) {
  Json section = yarn(1e4, 40, 4096);
  section.update({{"mscale", 1.0}, {"mscale_all_dim", 1.0}});
  const RotaryTable even = read({{"rope_scaling", section}});
  expect_frequencies(even, {1.0, 0.316227764, 0.100000001, 0.0239147246, 0.00512499968, 0.000849862176,
                            2.49999994e-05, 7.90569447e-06});
  EXPECT_EQ(1, even.mscale);
  EXPECT_NEAR(1.8738542070926265, even.score_scale, 1e-14);
  section["mscale"] = 0.707;
  EXPECT_NEAR(0.9210423553163399, read({{"rope_scaling", section}}).mscale, 1e-15);
}

TEST(Rotary, RefusesWhatContradictsItselfOrIsUnknown) {
  const Json section = yarn(1e4, 4, 4096);
  EXPECT_NO_THROW(read({{"rope_parameters", section}, {"rope_scaling", section}}));
  expect_error(ErrorKind::checkpoint, {"contradict each other"}, [&] {
    read({{"rope_parameters", section}, {"rope_scaling", yarn(1e4, 8, 4096)}});
  });
  expect_error(ErrorKind::unsupported, {"'longrope'", "yarn"}, [] {
    read({{"rope_theta", 1e4}, {"rope_scaling", {{"rope_type", "longrope"}}}});
  });
  expect_error(ErrorKind::checkpoint, {"base 1 "}, [] { read({{"rope_theta", 1}}); });
  expect_error(ErrorKind::checkpoint, {"32 of 16 channels"}, [] { read({{"rope_theta", 1e4}}, 2); });
}

}  // namespace
}  // namespace sluice::layers
