// Products with activations rounded to integers: the formula, bit for bit, and values that cannot be rounded.
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "isas_here.h"
#include "quant/affine.h"
#include "runner/bound_op.h"
#include "runner/cases/weight_formats.h"
#include "sluice/ops/backend.h"

namespace sluice::runner {
namespace {

using ops::DType;

constexpr std::uint64_t kSeed = 77;

struct Shape {
  int bits;
  std::int64_t group;
  std::int64_t inputs;
};

float from_bf16(const HostTensor& tensor, std::int64_t i) {
  return static_cast<float>(tensor.at(i));
}

// Codes are a bit stream: some cross a word boundary.
std::int32_t code_at(const std::uint32_t* words, std::int64_t bit, int bits) {
  std::int32_t code = 0;
  for (int i = 0; i < bits; ++i, ++bit)
    code |= static_cast<std::int32_t>(words[bit / 32] >> bit % 32 & 1) << i;
  return code;
}

// One output as defined in src/backend/cpu/linear/integer/product.h.
float product(const OpFile& file, const Shape& shape, std::int64_t token, std::int64_t row) {
  const float* x = file.tensors.at("x").data<float>() + token * shape.inputs;
  const std::int64_t groups = shape.inputs / shape.group;
  const std::int64_t row_words = shape.inputs * shape.bits / 32;
  const auto* words = file.tensors.at("w.weight").data<std::uint32_t>() + row * row_words;
  float sums[4] = {};
  for (std::int64_t g = 0; g < groups; ++g) {
    float largest = 0;
    for (std::int64_t i = 0; i < shape.group; ++i)
      largest = std::max(largest, std::abs(x[g * shape.group + i]));
    std::int32_t dot = 0;
    std::int32_t total = 0;
    for (std::int64_t i = g * shape.group; i < (g + 1) * shape.group; ++i) {
      const auto q = static_cast<std::int32_t>(std::nearbyint(x[i] * (16256.0f / largest)));
      dot += code_at(words, i * shape.bits, shape.bits) * q;
      total += q;
    }
    const float x_scale = largest / 16256.0f;
    const float scale = from_bf16(file.tensors.at("w.scales"), row * groups + g);
    const float bias = from_bf16(file.tensors.at("w.biases"), row * groups + g);
    sums[g % 4] = std::fma(scale, static_cast<float>(dot) * x_scale, sums[g % 4]);
    sums[g % 4] = std::fma(bias, x_scale * static_cast<float>(total), sums[g % 4]);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

OpFile random_product(const Shape& shape, std::int64_t tokens, std::int64_t rows) {
  Random random(kSeed);
  OpFile file;
  file.tensors["x"] = normal(random, DType::f32, {tokens, shape.inputs});
  add_weight(file, random, "w", {rows, shape.inputs}, affine(shape.bits, static_cast<int>(shape.group)), 0.1);
  return file;
}

void expect_formula(ops::Backend& backend, const Shape& shape, std::int64_t tokens) {
  const std::int64_t rows = 37;
  const OpFile file = random_product(shape, tokens, rows);
  const HostTensor out = run_op(backend, "matmul", file).tensors.at("out");
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t r = 0; r < rows; ++r)
      ASSERT_EQ(out.data<float>()[t * rows + r], product(file, shape, t, r))
          << shape.bits << " bits, groups of " << shape.group << ", token " << t << " of " << tokens
          << ", row " << r;
}

void expect_formula(const std::string& isa) {
  SCOPED_TRACE(isa);
  const auto backend = ops::make_backend("cpu", {.threads = 2, .exact = false, .isa = isa});
  for (const Shape& shape : {Shape{4, 64, 512}, Shape{4, 64, 192}, Shape{4, 32, 224}, Shape{4, 128, 640},
                             Shape{8, 64, 320}, Shape{8, 32, 512}, Shape{8, 128, 384}, Shape{2, 64, 320},
                             Shape{2, 32, 96}, Shape{2, 128, 640}, Shape{3, 64, 576}, Shape{3, 32, 160},
                             Shape{5, 64, 192}, Shape{5, 128, 1152}, Shape{6, 32, 288}, Shape{6, 64, 512}})
    for (const std::int64_t tokens : {1, 2, 3, 7, 17, 150}) expect_formula(*backend, shape, tokens);
}

// On every instruction set of this machine with fused multiply-add.
TEST(IntegerProduct, IsTheFormulaToTheLastBit) {
  for (const std::string& isa : isas_here())
    if (isa != "sse4") expect_formula(isa);
#if HWY_ARCH_X86
  // AVX-512 without VNNI.
  if ((hwy::SupportedTargets() & HWY_AVX3) == 0) return;
  hwy::SetSupportedTargetsForTest(HWY_AVX3);
  expect_formula("");
  hwy::SetSupportedTargetsForTest(0);
#endif
}

TEST(IntegerProduct, KeepsNanAndInfinityInTheirToken) {
  const auto backend = ops::make_backend("cpu", {.threads = 2, .exact = false});
  for (const float bad : {NAN, INFINITY, -INFINITY})
    for (const std::int64_t tokens : {1, 5}) {
      OpFile file = random_product({4, 64, 256}, tokens, 9);
      file.tensors["x"].data<float>()[(tokens - 1) * 256 + 100] = bad;
      const HostTensor out = run_op(*backend, "matmul", file).tensors.at("out");
      for (std::int64_t i = 0; i < tokens * 9; ++i)
        EXPECT_EQ(std::isnan(out.at(i)), i / 9 == tokens - 1) << bad << " " << i;
    }
}

TEST(IntegerProduct, ZerosAndTheSmallestNumbersGiveZero) {
  const auto backend = ops::make_backend("cpu", {.threads = 1, .exact = false});
  for (const float small : {0.0f, -0.0f, 1e-40f, -1e-38f}) {
    OpFile file = random_product({8, 32, 96}, 3, 5);
    for (std::int64_t i = 0; i < 3 * 96; ++i) file.tensors["x"].data<float>()[i] = small;
    const HostTensor out = run_op(*backend, "matmul", file).tensors.at("out");
    for (std::int64_t i = 0; i < 15; ++i) EXPECT_EQ(out.at(i), 0);
  }
}

}  // namespace
}  // namespace sluice::runner
