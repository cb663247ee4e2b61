// Cases beyond the case tables: strided views, in-place outputs, fused compared with unfused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runner/random_tensor.h"
#include "sluice/ops/backend.h"

namespace sluice::ops {
namespace {

using runner::HostTensor;
using runner::Random;

constexpr std::uint64_t kSeed = 11;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

View view(HostTensor& tensor) {
  return {tensor.bytes.data(), tensor.dtype, tensor.shape};
}

HostTensor poisoned(DType type, const Shape& shape) {
  return runner::constant(type, shape, kNan);
}

class Elementwise : public ::testing::TestWithParam<const char*> {
 protected:
  HostTensor normal(DType type, const Shape& shape) { return runner::normal(random_, type, shape); }

  // Copies the columns from a wider tensor.
  static HostTensor gather(const ConstView& from) {
    HostTensor packed(from.dtype, from.shape);
    const std::size_t row = static_cast<std::size_t>(from.shape.back()) * size_bytes(from.dtype);
    std::byte* to = packed.bytes.data();
    for (std::int64_t t = 0; t < from.dim(0); ++t)
      for (std::int64_t h = 0; h < from.dim(1); ++h, to += row) std::memcpy(to, from[t][h].data, row);
    return packed;
  }

  Random random_{kSeed};
  std::unique_ptr<Backend> backend_ = make_backend(GetParam(), {.threads = 2});
};

TEST_P(Elementwise, StridedViewsTouchTheirColumnsOnly) {
  for (const DType type : {DType::f32, DType::bf16}) {
    HostTensor x = normal(type, {5, 3 * 50 + 7});
    HostTensor gate = normal(type, {5, 3 * 50 + 11});
    HostTensor wide = poisoned(type, {5, 3 * 50 + 2});
    const View a = view(x).columns(4, 150, {3, 50});
    const View b = view(gate).columns(9, 150, {3, 50});
    const View out = view(wide).columns(1, 150, {3, 50});
    backend_->run(Swiglu{.gate = a, .up = b, .out = out});
    HostTensor packed_a = gather(a);
    HostTensor packed_b = gather(b);
    HostTensor want = poisoned(type, {5, 3, 50});
    backend_->run(Swiglu{.gate = view(packed_a), .up = view(packed_b), .out = view(want)});
    EXPECT_EQ(gather(out).bytes, want.bytes);
    for (std::int64_t t = 0; t < 5; ++t) {
      EXPECT_TRUE(std::isnan(wide.at(t * 152)));
      EXPECT_TRUE(std::isnan(wide.at(t * 152 + 151)));
    }
  }
}

TEST_P(Elementwise, RopeAndL2NormWorkOnColumnsInPlace) {
  HostTensor wide = normal(DType::f32, {4, 200});
  const HostTensor before = wide;
  HostTensor inv_freq = runner::uniform(random_, DType::f32, {9}, 0, 1);
  HostTensor positions = runner::integers(random_, {4}, 5000);
  const View q = view(wide).columns(0, 80, {4, 20});
  const View k = view(wide).columns(100, 80, {4, 20});
  HostTensor packed_q = gather(q);
  HostTensor packed_k = gather(k);
  for (const auto& [x, y] : {std::pair(q, k), std::pair(view(packed_q), view(packed_k))}) {
    backend_->run(QkL2Norm{.q = x, .k = y, .eps = 1e-6, .q_scale = 0.5, .k_scale = 2});
    for (const View& part : {x, y})
      backend_->run(Rope{.x = part, .inv_freq = view(inv_freq), .positions = view(positions)});
  }
  EXPECT_EQ(gather(q).bytes, packed_q.bytes);
  EXPECT_EQ(gather(k).bytes, packed_k.bytes);
  for (std::int64_t t = 0; t < 4; ++t)
    for (std::int64_t i = 80; i < 100; ++i) EXPECT_EQ(wide.at(t * 200 + i), before.at(t * 200 + i));
}

TEST_P(Elementwise, OutputMayBeEitherInput) {
  for (const DType type : {DType::f32, DType::bf16}) {
    HostTensor x = normal(type, {7, 45});
    HostTensor gate = normal(type, {7, 45});
    HostTensor want = poisoned(type, {7, 45});
    backend_->run(SigmoidGate{.x = view(x), .gate = view(gate), .out = view(want)});
    HostTensor over_x = x;
    backend_->run(SigmoidGate{.x = view(over_x), .gate = view(gate), .out = view(over_x)});
    EXPECT_EQ(over_x.bytes, want.bytes);
    HostTensor over_gate = gate;
    backend_->run(SigmoidGate{.x = view(x), .gate = view(over_gate), .out = view(over_gate)});
    EXPECT_EQ(over_gate.bytes, want.bytes);
  }
}

TEST_P(Elementwise, FusedNormEqualsAddThenNorm) {
  for (const DType type : {DType::f32, DType::bf16}) {
    HostTensor residual = normal(type, {5, 333});
    HostTensor delta = normal(type, {5, 333});
    HostTensor weight = normal(DType::bf16, {333});
    HostTensor sum = poisoned(type, {5, 333});
    HostTensor want = poisoned(type, {5, 333});
    backend_->run(Add{.a = view(residual), .b = view(delta), .out = view(sum)});
    backend_->run(RmsNorm{.x = view(sum), .weight = view(weight), .out = view(want)});
    HostTensor out = poisoned(type, {5, 333});
    HostTensor over_delta = delta;
    HostTensor again = residual;
    backend_->run(AddRmsNorm{
        .residual = view(residual), .delta = view(delta), .weight = view(weight), .out = view(out)});
    EXPECT_EQ(residual.bytes, sum.bytes);
    EXPECT_EQ(out.bytes, want.bytes);
    backend_->run(AddRmsNorm{
        .residual = view(again), .delta = view(over_delta), .weight = view(weight), .out = view(over_delta)});
    EXPECT_EQ(over_delta.bytes, want.bytes);
  }
}

TEST_P(Elementwise, CombineOverTheResidual) {
  HostTensor residual = normal(DType::f32, {3, 700});
  HostTensor experts = normal(DType::f32, {3, 2, 700});
  HostTensor weights = normal(DType::f32, {3, 2});
  HostTensor want = poisoned(DType::f32, {3, 700});
  MoeCombine op;
  op.residual = view(residual);
  op.expert_out = view(experts);
  op.weights = view(weights);
  op.out = view(want);
  backend_->run(op);
  op.out = view(residual);
  backend_->run(op);
  EXPECT_EQ(residual.bytes, want.bytes);
}

TEST_P(Elementwise, GatesAreRightFarOut) {
  const float inf = std::numeric_limits<float>::infinity();
  HostTensor gate(DType::f32, {9});
  HostTensor ones = runner::constant(DType::f32, {9}, 1);
  const float values[] = {-inf, -3e38f, -200, -80, 0, 80, 200, 3e38f, inf};
  std::memcpy(gate.bytes.data(), values, sizeof(values));
  HostTensor out = poisoned(DType::f32, {9});
  backend_->run(SigmoidGate{.x = view(ones), .gate = view(gate), .out = view(out)});
  const double want[] = {0, 0, 0, std::exp(-80.0), 0.5, 1, 1, 1, 1};
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(out.at(i), want[i], 1e-6 * want[i]) << values[i];
  backend_->run(
      Swiglu{.gate = view(gate).rows(1, 7), .up = view(ones).rows(1, 7), .out = view(out).rows(1, 7)});
  for (int i = 1; i < 8; ++i)
    EXPECT_NEAR(out.at(i), values[i] * want[i], std::fabs(1e-6 * values[i] * want[i])) << values[i];
}

TEST_P(Elementwise, NanIsNotSwallowed) {
  HostTensor gate = runner::constant(DType::f32, {3, 19}, kNan);
  HostTensor ones = runner::constant(DType::f32, {3, 19}, 1);
  HostTensor out = runner::constant(DType::f32, {3, 19}, 0);
  backend_->run(SigmoidGate{.x = view(ones), .gate = view(gate), .out = view(out)});
  for (std::int64_t i = 0; i < 57; ++i) EXPECT_TRUE(std::isnan(out.at(i)));
  backend_->run(RmsNorm{.x = view(gate), .weight = {}, .out = view(out)});
  for (std::int64_t i = 0; i < 57; ++i) EXPECT_TRUE(std::isnan(out.at(i)));
}

INSTANTIATE_TEST_SUITE_P(Backends, Elementwise, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::ops
