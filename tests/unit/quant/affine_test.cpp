#include "quant/affine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "expect_error.h"
#include "source_dir.h"

namespace sluice::quant {
namespace {

using checkpoint::SafetensorsFile;
using ops::DType;

struct Golden {
  const char* name;
  DType type;
};

class AffineGolden : public ::testing::TestWithParam<Golden> {};

std::vector<std::byte> bytes_of(const SafetensorsFile& file, const std::string& name) {
  const checkpoint::TensorEntry* entry = file.find(name);
  if (entry == nullptr) throw std::runtime_error("no tensor " + name);
  return {entry->data.begin(), entry->data.end()};
}

// Words, scales, biases and values as from MLX, for every width and group size, at odd addresses.
TEST_P(AffineGolden, BitForBit) {
  const Golden golden = GetParam();
  const SafetensorsFile file(std::string(test_data()) + "/quant/affine_" + golden.name + ".safetensors");
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128}) {
      const std::string key = std::to_string(bits) + "." + std::to_string(group);
      SCOPED_TRACE(key);
      std::vector<std::byte> values = bytes_of(file, key + ".values");
      const auto want_words = bytes_of(file, key + ".words");
      const auto want_scales = bytes_of(file, key + ".scales");
      const auto want_biases = bytes_of(file, key + ".biases");
      const auto want_values = bytes_of(file, key + ".decoded");
      values.insert(values.begin(), std::byte{0});
      std::vector<std::byte> words(want_words.size() + 1), scales(want_scales.size() + 1);
      std::vector<std::byte> biases(want_biases.size() + 1), decoded(want_values.size() + 1);
      const ValueRows shape{golden.type, file.find(key + ".values")->shape[0], group};
      encode_affine({bits, group}, shape, values.data() + 1, words.data() + 1, scales.data() + 1,
                    biases.data() + 1);
      EXPECT_EQ(std::memcmp(words.data() + 1, want_words.data(), want_words.size()), 0);
      EXPECT_EQ(std::memcmp(scales.data() + 1, want_scales.data(), want_scales.size()), 0);
      EXPECT_EQ(std::memcmp(biases.data() + 1, want_biases.data(), want_biases.size()), 0);
      decode_affine({bits, group}, shape, words.data() + 1, scales.data() + 1, biases.data() + 1,
                    decoded.data() + 1);
      EXPECT_EQ(std::memcmp(decoded.data() + 1, want_values.data(), want_values.size()), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Types, AffineGolden,
                         ::testing::Values(Golden{"f32", DType::f32}, Golden{"bf16", DType::bf16},
                                           Golden{"f16", DType::f16}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Affine, NotANumberBecomesCodeZero) {
  std::vector<float> values(32, 1);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::byte> words(32);
  float scale = 0;
  float bias = 0;
  encode_affine({8, 32}, {DType::f32, 1, 32}, reinterpret_cast<const std::byte*>(values.data()), words.data(),
                reinterpret_cast<std::byte*>(&scale), reinterpret_cast<std::byte*>(&bias));
  EXPECT_TRUE(std::isfinite(scale));
  EXPECT_TRUE(std::isfinite(bias));
  EXPECT_EQ(words[3], std::byte{0});
}

TEST(Affine, RefusesWhatTheFormatHasNot) {
  std::byte nothing{};
  const auto encode = [&](AffineFormat format, ValueRows shape) {
    encode_affine(format, shape, &nothing, &nothing, &nothing, &nothing);
  };
  expect_error(ErrorKind::input, {"7 bits", "2, 3, 4, 5, 6, 8"}, [&] {
    encode({7, 64}, {DType::f32, 0, 64});
  });
  expect_error(ErrorKind::input, {"groups of 48", "32, 64, 128"}, [&] {
    encode({4, 48}, {DType::f32, 0, 48});
  });
  expect_error(ErrorKind::input, {"96", "64"}, [&] { encode({4, 64}, {DType::f32, 1, 96}); });
  expect_error(ErrorKind::input, {"I32", "F32, BF16 or F16"}, [&] { encode({4, 64}, {DType::i32, 1, 64}); });
}

}  // namespace
}  // namespace sluice::quant
