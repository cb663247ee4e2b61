// Promises of the codec beyond its specification: its error, its norms, the effect of signs, and attention
// that does not depend on the division of tokens into calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "quant/codebook.h"
#include "quant/rotation_signs.h"
#include "runner/bound_op.h"
#include "runner/random_tensor.h"

namespace sluice::runner {
namespace {

using ops::DType;
constexpr std::uint64_t kSeed = 20250101;

std::unique_ptr<ops::Backend> cpu(int threads = 2) {
  return ops::make_backend("cpu", {.threads = threads});
}

HostTensor random_signs(Random& random, std::int64_t width) {
  return random_bytes(random, DType::u8, {width / 8});
}

// x [T,1,D] encoded and decoded.
HostTensor round_trip(ops::Backend& backend, const HostTensor& x, const HostTensor* signs, int bits,
                      const char* norm) {
  OpFile encode;
  encode.tensors["x"] = x;
  if (signs != nullptr) encode.tensors["signs"] = *signs;
  encode.attributes = {{"bits", std::to_string(bits)}, {"norm", norm}};
  OpFile decode = run_op(backend, "turboquant_encode", encode);
  if (signs != nullptr) decode.tensors["signs"] = *signs;
  decode.attributes = {{"bits", std::to_string(bits)}};
  return run_op(backend, "turboquant_decode", decode).tensors.at("out");
}

// The mean over vectors of |x - y|^2 / |x|^2.
double relative_squared_error(const HostTensor& x, const HostTensor& y) {
  const std::int64_t width = x.shape.back();
  const std::int64_t vectors = x.shape.elements() / width;
  double mean = 0;
  for (std::int64_t v = 0; v < vectors; ++v) {
    double difference = 0;
    double size = 0;
    for (std::int64_t i = v * width; i < (v + 1) * width; ++i) {
      difference += (x.at(i) - y.at(i)) * (x.at(i) - y.at(i));
      size += x.at(i) * x.at(i);
    }
    mean += difference / size / static_cast<double>(vectors);
  }
  return mean;
}

// The mean of f(t, nearest level) over one coordinate t of a uniform point on the sphere of radius sqrt(D):
// density proportional to (1 - t^2/D)^((D-3)/2).
template <class F>
double mean_on_sphere(int bits, std::int64_t width, F&& f) {
  const quant::Codebook& book = quant::codebook(bits);
  const auto d = static_cast<double>(width);
  const int steps = 200000;
  const double reach = std::min(std::sqrt(d), 9.0);
  double sum = 0;
  double mass = 0;
  for (int i = 0; i < steps; ++i) {
    const double t = reach * (2 * (i + 0.5) / steps - 1);
    const double density = std::pow(1 - t * t / d, (d - 3) / 2);
    sum += density * f(t, book.levels()[book.nearest(t)]);
    mass += density;
  }
  return sum / mass;
}

double expected_error(int bits, std::int64_t width) {
  return mean_on_sphere(bits, width, [](double t, double level) { return (t - level) * (t - level); });
}

class TurboquantError : public ::testing::TestWithParam<std::tuple<int, std::int64_t, bool>> {};

TEST_P(TurboquantError, IsThatOfAPointOnTheSphere) {
  const auto [bits, width, with_signs] = GetParam();
  Random random(kSeed);
  const HostTensor signs = random_signs(random, width);
  const HostTensor x = normal(random, DType::f32, {262144 / width, 1, width}, 3);
  const HostTensor y = round_trip(*cpu(), x, with_signs ? &signs : nullptr, bits, "plain");
  const double expected = expected_error(bits, width);
  EXPECT_NEAR(relative_squared_error(x, y) / expected, 1, 0.02) << "seed " << kSeed;
}

INSTANTIATE_TEST_SUITE_P(All, TurboquantError,
                         ::testing::Combine(::testing::Values(2, 3, 4, 5, 6, 8),
                                            ::testing::Values(32, 64, 128, 256, 512, 1024),
                                            ::testing::Bool()));

// 30% of the energy in one Walsh function, or in a constant (the first of them), under the signs that caches
// use: the error remains that of a random vector.
class StructuredError : public ::testing::TestWithParam<std::tuple<int, std::int64_t, bool>> {};

TEST_P(StructuredError, IsThatOfAPointOnTheSphere) {
  const auto [bits, width, constant_part] = GetParam();
  Random random(kSeed);
  constexpr auto kSigns = quant::rotation_signs();
  HostTensor signs(DType::u8, {width / 8});
  std::memcpy(signs.bytes.data(), kSigns.data(), signs.bytes.size());
  HostTensor x = normal(random, DType::f32, {262144 / width, 1, width}, std::sqrt(0.7));
  const std::int64_t walsh = constant_part ? 0 : width / 2 + 5;
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
    const bool odd = std::popcount(static_cast<std::uint64_t>(i % width & walsh)) % 2 != 0;
    set(x, i, x.at(i) + std::sqrt(0.3) * (odd ? -1 : 1));
  }
  const double error = relative_squared_error(x, round_trip(*cpu(), x, &signs, bits, "plain"));
  EXPECT_NEAR(error / expected_error(bits, width), 1, 0.02) << "seed " << kSeed;
  const double unsigned_error = relative_squared_error(x, round_trip(*cpu(), x, nullptr, bits, "plain"));
  EXPECT_GT(unsigned_error, 1.15 * error);
}

INSTANTIATE_TEST_SUITE_P(All, StructuredError,
                         ::testing::Combine(::testing::Values(2, 3, 4, 5, 6, 8),
                                            ::testing::Values(64, 128, 256, 512), ::testing::Bool()));

// Known optima for the sphere itself: one Gaussian table for every D costs almost nothing from 128 on.
TEST(Turboquant, GaussianTableIsNearlyOptimalOnTheSphere) {
  const struct {
    std::int64_t width;
    double two, three, four;
  } kOptimal[] = {
      {128, .116000, .033966, .009315}, {256, .116740, .034256, .009408}, {512, .117111, .034402, .009454}};
  for (const auto& row : kOptimal) {
    EXPECT_NEAR(expected_error(2, row.width) / row.two, 1.0005, 0.0006);
    EXPECT_NEAR(expected_error(3, row.width) / row.three, 1.0005, 0.0006);
    EXPECT_NEAR(expected_error(4, row.width) / row.four, 1.0005, 0.0006);
  }
}

// Queries that share a direction with the keys, as in attention: matched norms correct most of the plain
// norm's error along the key.
TEST(Turboquant, MatchedNormsHalveTheErrorOfProducts) {
  constexpr std::int64_t kWidth = 128;
  constexpr std::int64_t kVectors = 4096;
  Random random(kSeed);
  const HostTensor signs = random_signs(random, kWidth);
  const HostTensor x = normal(random, DType::f32, {kVectors, 1, kWidth});
  double error[2] = {};
  for (const int matched : {0, 1}) {
    const HostTensor y = round_trip(*cpu(), x, &signs, 4, matched != 0 ? "matched" : "plain");
    Random noise(kSeed + 1);
    for (std::int64_t v = 0; v < kVectors; ++v) {
      double off = 0;
      for (std::int64_t i = v * kWidth; i < (v + 1) * kWidth; ++i) {
        const double q = (x.at(i) + noise.normal()) / std::numbers::sqrt2;
        off += q * (x.at(i) - y.at(i));
      }
      error[matched] += off * off / (kWidth * kVectors);
    }
  }
  EXPECT_LT(error[1], 0.5 * error[0]);
}

// A query along the key shows only the bias.
TEST(Turboquant, MatchedNormsHalveTheShrinking) {
  constexpr std::int64_t kWidth = 256;
  Random random(kSeed);
  const HostTensor signs = random_signs(random, kWidth);
  const HostTensor x = normal(random, DType::f32, {8192, 1, kWidth});
  const auto shrinking = [&](const char* norm) {
    const HostTensor y = round_trip(*cpu(), x, &signs, 4, norm);
    double product = 0;
    double size = 0;
    for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
      product += x.at(i) * y.at(i);
      size += x.at(i) * x.at(i);
    }
    return 1 - product / size;
  };
  const double product = mean_on_sphere(4, kWidth, [](double t, double level) { return t * level; });
  const double size = mean_on_sphere(4, kWidth, [](double, double level) { return level * level; });
  EXPECT_NEAR(shrinking("plain") / (1 - product), 1, 0.03);
  EXPECT_NEAR(shrinking("matched") / (1 - product / std::sqrt(size)), 1, 0.03);
  EXPECT_LT(shrinking("matched"), 0.6 * shrinking("plain"));
}

// A vector with 30% of its energy in one Walsh function: the rotation concentrates that in one coordinate,
// far beyond the outermost level, unless signs break the pattern.
TEST(Turboquant, SignsProtectStructuredVectors) {
  constexpr std::int64_t kWidth = 256;
  constexpr std::int64_t kVectors = 512;
  Random random(kSeed);
  const HostTensor signs = random_signs(random, kWidth);
  HostTensor x = normal(random, DType::f32, {kVectors, 1, kWidth}, std::sqrt(0.7));
  for (std::int64_t i = 0; i < x.shape.elements(); ++i)
    set(x, i, x.at(i) + std::sqrt(0.3) * ((i & 16) != 0 ? -1 : 1));
  EXPECT_NEAR(relative_squared_error(x, round_trip(*cpu(), x, &signs, 4, "plain")), 0.0094, 0.0008);
  EXPECT_NEAR(relative_squared_error(x, round_trip(*cpu(), x, nullptr, 4, "plain")), 0.15, 0.02);
}

TEST(Turboquant, ZeroVectorsStayZero) {
  const HostTensor x = constant(DType::f32, {2, 1, 64}, 0);
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const char* norm : {"plain", "matched"})
      for (const char* backend : {"reference", "cpu"}) {
        OpFile file;
        file.tensors["x"] = x;
        file.attributes = {{"bits", std::to_string(bits)}, {"norm", norm}};
        const OpFile out = run_op(*ops::make_backend(backend), "turboquant_encode", file);
        EXPECT_EQ(out.tensors.at("norms").at(0), 0);
        // The code of value 0 is that of the highest negative level: all bits but the last.
        const int first = static_cast<int>(out.tensors.at("codes").at(0)) & ((1 << bits) - 1);
        EXPECT_EQ(first, (1 << (bits - 1)) - 1);
      }
}

TEST(Turboquant, NotANumberGetsCodeZero) {
  HostTensor x = constant(DType::f32, {1, 1, 32}, 1);
  set(x, 3, std::numeric_limits<double>::quiet_NaN());
  for (const char* backend : {"reference", "cpu"}) {
    OpFile file;
    file.tensors["x"] = x;
    file.attributes = {{"bits", "4"}};
    const OpFile out = run_op(*ops::make_backend(backend), "turboquant_encode", file);
    EXPECT_TRUE(std::isnan(out.tensors.at("norms").at(0)));
    for (std::int64_t i = 0; i < 16; ++i) EXPECT_EQ(out.tensors.at("codes").at(i), 0);
  }
}

}  // namespace
}  // namespace sluice::runner
