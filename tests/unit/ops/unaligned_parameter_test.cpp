// Parameters of a mapped file may have any byte address in host memory: the same bits as at an aligned one.
#include <gtest/gtest.h>

#include <cstring>

#include "expect_error.h"
#include "runner/random_tensor.h"
#include "sluice/ops/backend.h"

namespace sluice::ops {
namespace {

using runner::HostTensor;
using runner::Random;

View view(HostTensor& tensor) {
  return {tensor.bytes.data(), tensor.dtype, tensor.shape};
}

// A copy that starts `shift` bytes past an aligned address.
class Shifted {
 public:
  Shifted(const HostTensor& tensor, std::size_t shift)
      : bytes_(tensor.bytes.size() + shift), at_{bytes_.data() + shift, tensor.dtype, tensor.shape} {
    std::memcpy(bytes_.data() + shift, tensor.bytes.data(), tensor.bytes.size());
  }
  const ConstView& at() const { return at_; }

 private:
  std::vector<std::byte> bytes_;
  ConstView at_;
};

class UnalignedParameter : public ::testing::TestWithParam<std::string_view> {
 protected:
  // run(parameter) computes and returns the output.
  template <class Run>
  void expect_same(const Shape& shape, Run&& run) {
    const auto backend = make_backend(GetParam(), {.threads = 2});
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      const HostTensor parameter = uniform(random_, type, shape, 0.5, 1.5);
      const auto expected = run(*backend, Shifted(parameter, 0).at());
      for (const std::size_t shift : {1, 2, 3})
        EXPECT_EQ(run(*backend, Shifted(parameter, shift).at()), expected)
            << name(type) << " shifted by " << shift;
    }
  }
  Random random_{7};
};

TEST_P(UnalignedParameter, Norms) {
  HostTensor x = normal(random_, DType::f32, {3, 2, 37});
  HostTensor z = normal(random_, DType::f32, {3, 2, 37});
  HostTensor out(DType::f32, {3, 2, 37});
  expect_same({37}, [&](Backend& backend, const ConstView& weight) {
    backend.run(RmsNorm{.x = view(x), .weight = weight, .out = view(out), .eps = 1e-6});
    return out.bytes;
  });
  expect_same({37}, [&](Backend& backend, const ConstView& weight) {
    backend.run(GatedRmsNorm{.x = view(x), .z = view(z), .weight = weight, .out = view(out), .eps = 1e-6});
    return out.bytes;
  });
  const HostTensor start = normal(random_, DType::f32, {3, 37});
  HostTensor delta = normal(random_, DType::f32, {3, 37});
  HostTensor rows(DType::f32, {3, 37});
  expect_same({37}, [&](Backend& backend, const ConstView& weight) {
    HostTensor residual = start;
    AddRmsNorm op;
    op.residual = view(residual);
    op.delta = view(delta);
    op.weight = weight;
    op.out = view(rows);
    op.eps = 1e-6;
    backend.run(op);
    return rows.bytes;
  });
}

TEST_P(UnalignedParameter, Convolution) {
  HostTensor x = normal(random_, DType::f32, {3, 200});
  HostTensor out(DType::f32, {3, 200});
  expect_same({200, 4}, [&](Backend& backend, const ConstView& weight) {
    HostTensor state(DType::f32, {3, 200});
    CausalConv1d op;
    op.x = view(x);
    op.weight = weight;
    op.state = view(state);
    op.out = view(out);
    backend.run(op);
    return out.bytes;
  });
}

TEST_P(UnalignedParameter, GatesAndRouter) {
  HostTensor a = normal(random_, DType::f32, {3, 19});
  HostTensor b = normal(random_, DType::f32, {3, 19});
  HostTensor g(DType::f32, {3, 19});
  HostTensor beta(DType::f32, {3, 19});
  expect_same({19}, [&](Backend& backend, const ConstView& parameter) {
    DeltaGates op;
    op.a = view(a);
    op.b = view(b);
    op.A_log = parameter;
    op.dt_bias = parameter;
    op.g = view(g);
    op.beta = view(beta);
    backend.run(op);
    return g.bytes;
  });
  HostTensor experts(DType::i32, {3, 4});
  HostTensor weights(DType::f32, {3, 4});
  expect_same({19}, [&](Backend& backend, const ConstView& bias) {
    RouteSigmoid op;
    op.logits = view(a);
    op.bias = bias;
    op.experts = view(experts);
    op.weights = view(weights);
    op.k = 4;
    backend.run(op);
    return weights.bytes;
  });
}

// Parameters that the host cannot read must be aligned.
TEST(UnalignedParameterOnDevice, IsRefusedOutsideHostMemory) {
  Random random(8);
  HostTensor x = normal(random, DType::f32, {3, 8});
  HostTensor out(DType::f32, {3, 8});
  const Shifted weight(normal(random, DType::f32, {8}), 1);
  const RmsNorm op{.x = view(x), .weight = weight.at(), .out = view(out), .eps = 1e-6};
  check(op, true);
  expect_error(ErrorKind::input, {"rms_norm", "'weight'", "multiple of 4"}, [&] { check(op, false); });
}

INSTANTIATE_TEST_SUITE_P(Backends, UnalignedParameter, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::ops
