// The shares of many draws are the probabilities that transformers leaves after temperature, top-k, top-p and
// min-p, in that order.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runner/op_file.h"
#include "sluice/ops/backend.h"
#include "source_dir.h"

namespace sluice::sampling {
namespace {

constexpr std::int64_t kDraws = 20000;

class Draws : public ::testing::TestWithParam<std::string_view> {};

// Pearson's statistic over the tokens that are expected often enough, the rest as one; and their number.
std::pair<double, int> chi_square(const std::vector<std::int64_t>& counts, const float* probabilities) {
  double statistic = 0;
  int cells = 0;
  double rare = 0;
  double rare_seen = 0;
  const auto add = [&](double seen, double expected) {
    statistic += (seen - expected) * (seen - expected) / expected;
    ++cells;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * static_cast<double>(kDraws);
    const auto seen = static_cast<double>(counts[i]);
    if (expected >= 5) {
      add(seen, expected);
    } else {
      rare += expected;
      rare_seen += seen;
    }
  }
  if (rare >= 5) add(rare_seen, rare);
  return {statistic, cells};
}

TEST_P(Draws, FollowTheProbabilities) {
  const runner::OpFile file =
      runner::read_op_file(std::filesystem::path(test_data()) / "sampling" / "draws.safetensors");
  const auto& logits = file.tensors.at("logits");
  const std::int64_t rows = logits.shape[0];
  const std::int64_t vocab = logits.shape[1];
  const auto backend = ops::make_backend(GetParam(), {.threads = 2});
  const std::uint64_t seed = std::random_device{}();
  const auto setting = [&](const char* name, ops::DType type) {
    return ops::ConstView(file.tensors.at(name).bytes.data(), type, {rows});
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* from = logits.data<float>() + row * vocab;
    std::vector<float> repeated;
    std::vector<std::int32_t> positions;
    for (std::int64_t i = 0; i < kDraws; ++i) {
      repeated.insert(repeated.end(), from, from + vocab);
      positions.push_back(static_cast<std::int32_t>(i));
    }
    const std::vector<std::int32_t> slots(positions.size(), static_cast<std::int32_t>(row));
    std::vector<std::int32_t> ids(positions.size(), -1);
    ops::Sample op;
    op.logits = ops::ConstView(repeated.data(), ops::DType::f32, {kDraws, vocab});
    op.positions = ops::View(positions.data(), ops::DType::i32, {kDraws});
    op.ids = ops::View(ids.data(), ops::DType::i32, {kDraws});
    op.slots = ops::ConstView(slots.data(), ops::DType::i32, {kDraws});
    op.temperature = setting("temperature", ops::DType::f32);
    op.top_p = setting("top_p", ops::DType::f32);
    op.min_p = setting("min_p", ops::DType::f32);
    op.top_k = setting("top_k", ops::DType::i32);
    op.seed = seed;
    backend->run(op);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(vocab));
    for (const std::int32_t id : ids) {
      ASSERT_TRUE(id >= 0 && id < vocab);
      ++counts[static_cast<std::size_t>(id)];
    }
    const float* probabilities = file.tensors.at("probabilities").data<float>() + row * vocab;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (probabilities[i] == 0) {
        EXPECT_EQ(counts[i], 0) << "token " << i << " of row " << row << ", seed " << seed;
      }
    const auto [statistic, cells] = chi_square(counts, probabilities);
    // Five and a half standard deviations: one run in a million fails by chance.
    EXPECT_LE(statistic, cells + 5.5 * std::sqrt(2.0 * cells)) << "row " << row << ", seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Draws, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::sampling
