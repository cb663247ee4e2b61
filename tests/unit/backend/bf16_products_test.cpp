// The available kernels for products with BF16 rows of a cache, compared with sums in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "backend/cpu/attention/avx512_bf16.h"
#include "printed_seed.h"

namespace sluice::backend::cpu::attention {
namespace {

using bf16::Half;

constexpr std::size_t kRowHalves = 160;  // from one row to the next, more than a width
constexpr std::size_t kWidth = 128;
constexpr float kPoison = 1e30F;

float to_float(Half half) {
  const std::uint32_t bits = std::uint32_t{half} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

struct Case {
  std::string name;
  const AttendProducts* products;
};

// None, one or both.
std::vector<Case> supported_cases() {
  std::vector<Case> result;
  const Isa isa = choose_isa("");
  const AttendProducts* best = AttendProducts::best(isa);
  if (best != nullptr && best->uses_tiles()) result.push_back({"tiles", best});
  if (attend_pairs(isa) != nullptr) result.push_back({"pairs", attend_pairs(isa)});
  return result;
}

class AttendProductsOf : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    products_ = GetParam().products;
    random_.seed(printed_seed());
  }

  std::vector<Half> random_rows(std::size_t rows) {
    std::vector<Half> result(rows * kRowHalves);
    for (Half& half : result)
      half = static_cast<Half>((random_() & 0x81ff) | 0x3e00);  // 1/8 to 2, of either sign
    return result;
  }
  std::vector<float> random_floats(std::size_t count) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> result(count);
    for (float& x : result) x = uniform(random_);
    return result;
  }
  // Room for any of the queries in these tests.
  bf16::Workspace workspace(std::size_t queries, std::size_t pieces) {
    const bf16::Workspace::Sizes sizes{{queries, pieces}, kWidth, kWidth};
    memory_.resize((bf16::Workspace::bytes(sizes) + 127) / 64 * 16, kPoison);
    auto at = reinterpret_cast<std::uintptr_t>(memory_.data());
    return {sizes, reinterpret_cast<std::byte*>((at + 63) / 64 * 64)};
  }

  const AttendProducts* products_ = nullptr;
  std::mt19937 random_;
  std::vector<float> memory_;
};

TEST_P(AttendProductsOf, ScoreKeys) {
  const bf16::Session session(products_->uses_tiles());
  for (const std::size_t pieces : {1, 2, 3})
    for (const std::size_t queries : {1, 2, 3, 7, 8, 13, 16, 23}) {
      const auto space = workspace(queries, pieces);
      const bf16::Columns columns{queries, pieces};
      const std::vector<Half> keys = random_rows(bf16::kKeyRows);
      const std::vector<float> q = random_floats(queries * kWidth);
      const std::size_t stride = bf16::kKeyRows + 5;
      std::vector<float> scores(queries * stride, kPoison);
      AttendAhead ahead;
      products_->pack_queries(q.data(), kWidth, columns, kWidth, space.pieces, space.queries);
      // Twice: first set, then add.
      for (const bool add : {false, true})
        products_->multiply_keys({keys.data(), 2 * kRowHalves, kWidth}, space.queries, columns, add, ahead,
                                 space.dots);
      products_->store_scores(space.dots, columns, scores.data(), stride);
      const double limit = pieces == 1 ? 4e-3 : pieces == 2 ? 2e-5 : 2e-6;
      for (std::size_t i = 0; i < queries; ++i) {
        for (std::size_t j = 0; j < bf16::kKeyRows; ++j) {
          double sum = 0;
          double size = 0;
          for (std::size_t k = 0; k < kWidth; ++k) {
            const double term = 2.0 * q[i * kWidth + k] * to_float(keys[j * kRowHalves + k]);
            sum += term;
            size += std::abs(term);
          }
          ASSERT_NEAR(scores[i * stride + j], sum, limit * size) << queries << " queries, " << pieces;
        }
        for (std::size_t j = bf16::kKeyRows; j < stride; ++j) ASSERT_EQ(scores[i * stride + j], kPoison);
      }
    }
}

TEST_P(AttendProductsOf, AddValues) {
  const bf16::Session session(products_->uses_tiles());
  constexpr std::size_t kBegin = 1;
  constexpr std::size_t kEnd = 4;
  constexpr std::size_t kRows = kEnd * bf16::kValueStep;
  for (const std::size_t pieces : {1, 2})
    for (const std::size_t queries : {1, 2, 3, 7, 8, 13, 16, 23}) {
      const auto space = workspace(queries, pieces);
      const std::vector<Half> values = random_rows(kRows);
      const std::vector<float> weights = random_floats(queries * kRows);
      bf16::ValueStep steps[kEnd];
      for (std::size_t s = 0; s < kEnd; ++s)
        steps[s] = {values.data() + s * bf16::kValueStep * kRowHalves, 2 * kRowHalves};
      std::fill_n(space.sums, products_->all_sums(queries, pieces, kWidth), 0.0F);
      AttendAhead ahead;
      for (int turn = 0; turn < 2; ++turn)
        products_->add_values({steps, kBegin, kEnd, kWidth}, {weights.data(), kRows, queries, pieces},
                              space.weights, ahead, space.sums);
      std::vector<float> out(queries * kWidth, kPoison);
      products_->add_sums(space.sums, queries, pieces, kWidth, out.data());
      const double limit = pieces == 1 ? 4e-3 : 2e-5;
      for (std::size_t i = 0; i < queries; ++i)
        for (std::size_t k = 0; k < kWidth; ++k) {
          double sum = 0;
          double size = 0;
          for (std::size_t j = kBegin * bf16::kValueStep; j < kRows; ++j) {
            const double term = 2.0 * weights[i * kRows + j] * to_float(values[j * kRowHalves + k]);
            sum += term;
            size += std::abs(term);
          }
          ASSERT_NEAR(out[i * kWidth + k], sum, limit * size) << queries << " queries, " << pieces;
        }
    }
}

// A query's results have the same bits whatever queries are beside it.
TEST_P(AttendProductsOf, QueriesAreIndependent) {
  const bf16::Session session(products_->uses_tiles());
  constexpr std::size_t kQueries = 13;
  const std::vector<Half> rows = random_rows(bf16::kKeyRows);
  const std::vector<float> q = random_floats(kQueries * kWidth);
  const bf16::ValueStep steps[] = {{rows.data(), 2 * kRowHalves},
                                   {rows.data() + bf16::kValueStep * kRowHalves, 2 * kRowHalves}};
  const auto run = [&](std::size_t first, std::size_t count, std::vector<float>& scores,
                       std::vector<float>& out) {
    const auto space = workspace(count, 2);
    const bf16::Columns columns{count, 2};
    AttendAhead ahead;
    scores.assign(count * bf16::kKeyRows, kPoison);
    out.assign(count * kWidth, kPoison);
    products_->pack_queries(q.data() + first * kWidth, kWidth, columns, kWidth, space.pieces, space.queries);
    products_->multiply_keys({rows.data(), 2 * kRowHalves, kWidth}, space.queries, columns, false, ahead,
                             space.dots);
    products_->store_scores(space.dots, columns, scores.data(), bf16::kKeyRows);
    std::fill_n(space.sums, products_->all_sums(count, 2, kWidth), 0.0F);
    products_->add_values({steps, 0, 2, kWidth}, {scores.data(), bf16::kKeyRows, count, 2}, space.weights,
                          ahead, space.sums);
    products_->add_sums(space.sums, count, 2, kWidth, out.data());
  };
  std::vector<float> all_scores, all_out, scores, out;
  run(0, kQueries, all_scores, all_out);
  for (std::size_t first = 0; first < kQueries; ++first) {
    run(first, 1, scores, out);
    EXPECT_EQ(0, std::memcmp(scores.data(), all_scores.data() + first * scores.size(),
                             scores.size() * sizeof(float)));
    EXPECT_EQ(0, std::memcmp(out.data(), all_out.data() + first * out.size(), out.size() * sizeof(float)));
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AttendProductsOf);
INSTANTIATE_TEST_SUITE_P(Cpu, AttendProductsOf, testing::ValuesIn(supported_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::backend::cpu::attention
