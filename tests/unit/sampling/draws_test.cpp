// The frequencies of many draws match the probabilities of transformers after penalties, bias, mask,
// temperature, top-k, top-p and min-p, in that order.
#include <gtest/gtest.h>

#include <cmath>
#include <list>
#include <random>

#include "printed_seed.h"
#include "runner/op_file.h"
#include "sluice/ops/backend.h"
#include "source_dir.h"

namespace sluice::sampling {
namespace {

constexpr std::int64_t kDraws = 20000;

class Draws : public ::testing::TestWithParam<std::string_view> {};

// Pearson's statistic over the tokens that are expected often enough, with the rest as one cell; and the
// number of cells.
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

// One row of a file's tensor, repeated for every draw.
class Repeated {
 public:
  Repeated(const runner::OpFile& file, const char* name, std::int64_t row) : tensor_(file.tensors.at(name)) {
    const std::size_t bytes = tensor_.bytes.size() / static_cast<std::size_t>(tensor_.shape[0]);
    const std::byte* const from = tensor_.bytes.data() + static_cast<std::size_t>(row) * bytes;
    for (std::int64_t i = 0; i < kDraws; ++i) bytes_.insert(bytes_.end(), from, from + bytes);
  }
  ops::View view() {
    ops::Shape shape = tensor_.shape;
    shape[0] = kDraws;
    return {bytes_.data(), tensor_.dtype, shape};
  }

 private:
  const runner::HostTensor& tensor_;
  std::vector<std::byte> bytes_;
};

TEST_P(Draws, FollowTheProbabilities) {
  const runner::OpFile file =
      runner::read_op_file(std::filesystem::path(test_data()) / "sampling" / "draws.safetensors");
  const std::int64_t rows = file.tensors.at("logits").shape[0];
  const std::int64_t vocab = file.tensors.at("logits").shape[1];
  const auto backend = ops::make_backend(GetParam(), {.threads = 2});
  const std::uint64_t seed = printed_seed();
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<std::int32_t> positions;
    for (std::int64_t i = 0; i < kDraws; ++i) positions.push_back(static_cast<std::int32_t>(i));
    std::vector<std::int32_t> ids(positions.size(), -1);
    std::list<Repeated> held;
    const auto all = [&](const char* name) -> ops::ConstView {
      return held.emplace_back(file, name, row).view();
    };
    ops::Sample op;
    op.logits = all("logits");
    op.positions = ops::View(positions.data(), ops::DType::i32, {kDraws});
    op.ids = ops::View(ids.data(), ops::DType::i32, {kDraws});
    op.counts = held.emplace_back(file, "counts", row).view();
    op.repetition_penalty = all("repetition_penalty");
    op.presence_penalty = all("presence_penalty");
    op.frequency_penalty = all("frequency_penalty");
    op.bias_ids = all("bias_ids");
    op.bias = all("bias");
    op.allowed = all("allowed");
    op.temperature = all("temperature");
    op.top_p = all("top_p");
    op.min_p = all("min_p");
    op.top_k = all("top_k");
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
        EXPECT_EQ(counts[i], 0) << "token " << i << " of row " << row;
      }
    const auto [statistic, cells] = chi_square(counts, probabilities);
    // Five and a half standard deviations: one run in a million fails by chance.
    EXPECT_LE(statistic, cells + 5.5 * std::sqrt(2.0 * cells)) << "row " << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Draws, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::sampling
