// Products of weights whose codes or scales are small floating-point numbers, including those that kernels
// treat specially: NaN, the smallest, negative ones.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/integer_cast.h"
#include "isas_here.h"
#include "runner/bound_op.h"
#include "runner/cases/weight_formats.h"
#include "sluice/ops/backend.h"

namespace sluice::runner {
namespace {

using ops::DType;
using ops::QuantMode;

constexpr std::int64_t kRows = 21;
constexpr std::int64_t kTokens = 40;

OpFile random_product(QuantMode mode, std::int64_t inputs) {
  Random random(99);
  OpFile file;
  file.tensors["x"] = normal(random, DType::f32, {kTokens, inputs});
  add_weight(file, random, "w", {kRows, inputs}, packed(mode), 0.1);
  return file;
}

OpFile first_tokens(OpFile file, std::int64_t tokens) {
  HostTensor& x = file.tensors.at("x");
  x.shape[0] = tokens;
  x.bytes.resize(to_size(x.shape.elements()) * sizeof(float));
  return file;
}

// The results of some tokens match the reference's to `limit` relative to the row's largest, and are NaN
// where it is.
void expect_agreement(const HostTensor& got, const HostTensor& want, double limit) {
  for (std::int64_t r = 0; r < kRows; ++r) {
    double largest = 0;
    for (std::int64_t t = 0; t < kTokens; ++t) largest = std::max(largest, std::abs(want.at(t * kRows + r)));
    for (std::int64_t i = r; i < got.shape.elements(); i += kRows) {
      ASSERT_EQ(std::isnan(got.at(i)), std::isnan(want.at(i))) << "token " << i / kRows << ", row " << r;
      if (std::isnan(want.at(i))) continue;
      ASSERT_NEAR(got.at(i), want.at(i), limit * largest) << "token " << i / kRows << ", row " << r;
    }
  }
}

// On every instruction set of this machine, for one token, two and many.
void expect_reference(QuantMode mode, std::int64_t inputs, const auto& change) {
  OpFile file = random_product(mode, inputs);
  change(file);
  const HostTensor want = run_op(*ops::make_backend("reference"), "matmul", file).tensors.at("out");
  for (const std::string& isa : isas_here())
    for (const bool exact : {true, false}) {
      const auto backend = ops::make_backend("cpu", {.threads = 2, .exact = exact, .isa = isa});
      for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{2}, kTokens}) {
        SCOPED_TRACE(fmt::format("{}, {}, {} tokens", isa, exact ? "exact" : "rounded", tokens));
        const OpFile some = first_tokens(file, tokens);
        expect_agreement(run_op(*backend, "matmul", some).tensors.at("out"), want, exact ? 1e-5 : 5e-4);
      }
    }
}

TEST(SmallFloats, ScalesOfMxfp4AreAllPowersAndNan) {
  for (const std::int64_t inputs : {256, 288})  // a multiple of eight groups, and not
    expect_reference(QuantMode::mxfp4, inputs, [&](OpFile& file) {
      auto* scales = file.tensors["w.scales"].data<std::uint8_t>();
      const std::int64_t groups = inputs / 32;
      scales[3 * groups + 2] = 255;  // NaN
      for (std::int64_t g = 0; g < groups; ++g) {
        scales[7 * groups + g] = 0;  // 2^-127
        scales[11 * groups + g] = 1;
        scales[13 * groups + g] = static_cast<std::uint8_t>(200 + g);
      }
    });
}

TEST(SmallFloats, ScalesOfNvfp4AreSubnormalNegativeAndNan) {
  for (const std::int64_t inputs : {256, 272})
    expect_reference(QuantMode::nvfp4, inputs, [&](OpFile& file) {
      auto* scales = file.tensors["w.scales"].data<std::uint8_t>();
      const std::int64_t groups = inputs / 16;
      scales[2 * groups + 5] = 0x7f;  // NaN
      scales[4 * groups + 1] = 0x9c;  // negative
      for (std::int64_t g = 0; g < groups; ++g) {
        scales[9 * groups + g] = static_cast<std::uint8_t>(g % 8);  // zero and subnormal
        scales[20 * groups + g] = 0x7e;
      }
    });
}

TEST(SmallFloats, CodesOfMxfp8AreAllNumbersAndNan) {
  for (const std::int64_t inputs : {256, 288})
    expect_reference(QuantMode::mxfp8, inputs, [&](OpFile& file) {
      auto* codes = reinterpret_cast<std::uint8_t*>(file.tensors["w.weight"].data<std::uint32_t>());
      for (std::int64_t i = 0; i < inputs; ++i) {
        const auto code = static_cast<std::uint8_t>(i % 256);
        codes[5 * inputs + i] = (code & 0x7f) == 0x7f ? 0 : code;
      }
      codes[8 * inputs + 31] = 0x7f;
      codes[16 * inputs + inputs - 1] = 0xff;
    });
}

}  // namespace
}  // namespace sluice::runner
