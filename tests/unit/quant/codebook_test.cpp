#include "quant/codebook.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "expect_error.h"

namespace sluice::quant {
namespace {

class CodebookOfBits : public ::testing::TestWithParam<int> {};

double density(double x) {
  return std::isinf(x) ? 0 : std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}

// P(low < X < high) for 0 <= low, without cancellation in the tail.
double mass(double low, double high) {
  return 0.5 * (std::erfc(low / std::numbers::sqrt2) - std::erfc(high / std::numbers::sqrt2));
}

TEST_P(CodebookOfBits, EveryLevelIsTheMeanOfItsCell) {
  const Codebook& book = codebook(GetParam());
  ASSERT_EQ(book.size(), std::size_t{1} << GetParam());
  const std::size_t half = book.size() / 2;
  EXPECT_EQ(book.bounds()[half - 1], 0);
  for (std::size_t c = half; c < book.size(); ++c) {
    const double low = book.bounds()[c - 1];
    const double high = book.bounds()[c];
    EXPECT_NEAR(book.levels()[c], (density(low) - density(high)) / mass(low, high), 1e-11) << c;
    EXPECT_EQ(book.levels()[book.size() - 1 - c], -book.levels()[c]);
    EXPECT_EQ(book.float_levels()[c], static_cast<float>(book.levels()[c]));
  }
}

TEST_P(CodebookOfBits, NearestAgreesWithALinearSearch) {
  const Codebook& book = codebook(GetParam());
  const auto check = [&](double value) {
    int code = 0;
    while (value > book.bounds()[static_cast<std::size_t>(code)]) ++code;
    ASSERT_EQ(book.nearest(value), code) << value;
  };
  for (std::size_t c = 0; c + 1 < book.size(); ++c) {
    const double border = book.bounds()[c];
    EXPECT_EQ(book.nearest(border), c);  // on a border, the lower code
    EXPECT_EQ(book.nearest(std::nextafter(border, 10)), c + 1);
    EXPECT_EQ(book.nearest(std::nextafter(border, -10)), c);
    EXPECT_EQ(book.nearest(book.levels()[c]), c);
  }
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0, 1.5);
  for (int i = 0; i < 100000; ++i) check(normal(random));
  for (int i = -6000; i <= 6000; ++i) check(i * 1e-3);
}

TEST_P(CodebookOfBits, ExtremesHaveTheOutermostCodes) {
  const Codebook& book = codebook(GetParam());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(book.nearest(kInfinity), book.size() - 1);
  EXPECT_EQ(book.nearest(1e300), book.size() - 1);
  EXPECT_EQ(book.nearest(-kInfinity), 0);
  EXPECT_EQ(book.nearest(std::numeric_limits<double>::quiet_NaN()), 0);
}

INSTANTIATE_TEST_SUITE_P(Bits, CodebookOfBits, ::testing::Values(2, 3, 4, 5, 6, 8));

// Max (1960) gives the first widths to four digits; the rest was computed independently in long double.
TEST(Codebook, AgreesWithPublishedLevels) {
  const double four[] = {0.1283950, 0.3880483, 0.6567591, 0.9423405,
                         1.2562312, 1.6180464, 2.0690172, 2.7325896};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(codebook(4).levels()[8 + i], four[i], 1e-7);
  EXPECT_NEAR(codebook(2).levels()[2], 0.4527800, 1e-7);
  EXPECT_NEAR(codebook(2).levels()[3], 1.5104176, 1e-7);
  EXPECT_NEAR(codebook(3).levels()[4], 0.2450942, 1e-7);
  EXPECT_NEAR(codebook(3).levels()[7], 2.1519457, 1e-7);
  EXPECT_NEAR(codebook(5).levels()[16], 0.0658897, 1e-7);
  EXPECT_NEAR(codebook(5).levels()[31], 3.2607325, 1e-7);
  EXPECT_NEAR(codebook(6).levels()[32], 0.0334095, 1e-7);
  EXPECT_NEAR(codebook(6).levels()[63], 3.7441013, 1e-7);
  EXPECT_NEAR(codebook(8).levels()[128], 0.0084462, 1e-7);
  EXPECT_NEAR(codebook(8).levels()[192], 1.1734682, 1e-7);
  EXPECT_NEAR(codebook(8).levels()[255], 4.6035356, 1e-7);
}

TEST(Codebook, RefusesOtherWidths) {
  for (const int bits : {-1, 0, 1, 7, 9, 64})
    expect_error(ErrorKind::internal, {std::to_string(bits), "2, 3, 4, 5, 6 or 8"}, [&] { codebook(bits); });
}

}  // namespace
}  // namespace sluice::quant
