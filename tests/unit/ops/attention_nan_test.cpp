// A value in the cache that is not finite affects the queries that see its row, and its column, and nothing
// else.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sluice/ops/backend.h"

namespace sluice::ops {
namespace {

class AttentionNan : public ::testing::TestWithParam<std::string_view> {};

TEST_P(AttentionNan, StaysWithTheQueriesThatSeeIt) {
  constexpr std::int64_t kTokens = 20;
  constexpr std::int64_t kWidth = 16;
  constexpr std::int64_t kBad = 11;  // with a window of 4, tokens 11..14 see this row
  const auto backend = make_backend(GetParam(), {.threads = 2});
  for (const bool in_keys : {true, false}) {
    std::vector<float> q(kTokens * kWidth, 0.5f);
    std::vector<float> k(kTokens * kWidth, 0.25f);
    std::vector<float> v(kTokens * kWidth, 2.0f);
    std::vector<float> out(kTokens * kWidth);
    for (std::int64_t i = 0; i < kWidth; ++i)
      (in_keys ? k : v)[static_cast<std::size_t>(kBad * kWidth + i)] = std::nanf("");
    const Shape shape = {kTokens, 1, kWidth};
    Attention op;
    op.q = View(q.data(), DType::f32, shape);
    op.k_cache = View(k.data(), DType::f32, shape);
    op.v_cache = View(v.data(), DType::f32, shape);
    op.out = View(out.data(), DType::f32, shape);
    op.window = 4;
    backend->run(op);
    for (std::int64_t t = 0; t < kTokens; ++t)
      for (std::int64_t i = 0; i < kWidth; ++i) {
        const float value = out[static_cast<std::size_t>(t * kWidth + i)];
        if (t >= kBad && t < kBad + 4)
          EXPECT_TRUE(std::isnan(value)) << "token " << t;
        else
          EXPECT_FLOAT_EQ(value, 2.0f) << "token " << t;
      }
  }
}

// BF16 caches may be computed by units that multiply neighbouring columns with zeros.
TEST_P(AttentionNan, StaysInItsColumn) {
  constexpr std::int64_t kRows = 150;
  constexpr std::int64_t kHeads = 4;
  constexpr std::int64_t kWidth = 128;
  constexpr std::int64_t kTokens = 20;
  constexpr std::int64_t kBad = 140;  // tokens 10..19 see this row
  constexpr std::int64_t kColumn = 37;
  const Shape cache = {kRows, 1, kWidth};
  const Shape shape = {kTokens, kHeads, kWidth};
  const std::vector<BFloat16> q(kTokens * kHeads * kWidth, to_bfloat16(0.5f));
  const std::vector<BFloat16> k(kRows * kWidth, to_bfloat16(0.25f));
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")})
    for (const bool exact : {true, false}) {
      const auto backend = make_backend(GetParam(), {.threads = 2, .exact = exact});
      std::vector<BFloat16> v(kRows * kWidth, to_bfloat16(2.0f));
      v[kBad * kWidth + kColumn] = to_bfloat16(bad);
      std::vector<BFloat16> out(kTokens * kHeads * kWidth);
      Attention op;
      op.q = ConstView(q.data(), DType::bf16, shape);
      op.k_cache = ConstView(k.data(), DType::bf16, cache);
      op.v_cache = ConstView(v.data(), DType::bf16, cache);
      op.out = View(out.data(), DType::bf16, shape);
      op.start = kRows - kTokens;
      backend->run(op);
      for (std::int64_t t = 0; t < kTokens; ++t)
        for (std::int64_t i = 0; i < kHeads * kWidth; ++i) {
          const float value = to_float(out[static_cast<std::size_t>(t * kHeads * kWidth + i)]);
          if (t + kRows - kTokens < kBad || i % kWidth != kColumn)
            ASSERT_EQ(value, 2.0f) << "token " << t << ", " << i;
          else if (std::isnan(bad))
            ASSERT_TRUE(std::isnan(value)) << "token " << t << ", " << i;
          else
            ASSERT_EQ(value, bad) << "token " << t << ", " << i;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionNan, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::ops
