// Errors of element-wise ops, and rules shared by all ops: an op that violates its contract is rejected by
// name on every host backend, and nothing is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <vector>

#include "expect_error.h"
#include "sluice/ops/backend.h"

namespace sluice::ops {
namespace {

class CheckElementwise : public ::testing::Test {
 protected:
  // Zeros, so that indices and positions are in range.
  View tensor(DType type, const Shape& shape) {
    auto& bytes = memory_.emplace_back(static_cast<std::size_t>(shape.elements()) * size_bytes(type));
    return {bytes.data(), type, shape};
  }
  View f32(const Shape& shape) { return tensor(DType::f32, shape); }

  template <class Op>
  void expect_accepted(const Op& op) {
    for (const char* backend : {"reference", "cpu"}) make_backend(backend, {.threads = 1})->run(op);
  }

  template <class Op>
  void expect_refused(const Op& op, std::initializer_list<std::string_view> parts) {
    for (const char* backend : {"reference", "cpu"}) {
      SCOPED_TRACE(backend);
      for (auto& bytes : memory_)
        if (!kept(bytes)) std::fill(bytes.begin(), bytes.end(), std::byte{0xa5});
      const auto before = memory_;
      expect_error(ErrorKind::input, parts, [&] { make_backend(backend, {.threads = 1})->run(op); });
      expect_error(ErrorKind::input, {Op::kName}, [&] { check(op); });
      EXPECT_EQ(memory_, before) << "a refused op wrote to memory";
    }
  }

  // The contents of this tensor matter to the check, so do not poison it.
  void keep(const ConstView& view) { kept_.push_back(view.data); }

 private:
  bool kept(const std::vector<std::byte>& bytes) const {
    for (const void* data : kept_)
      if (data == bytes.data()) return true;
    return false;
  }
  std::deque<std::vector<std::byte>> memory_;
  std::vector<const void*> kept_;
};

// Rules of shape, type, layout and overlap are the same code for every op, so one element-wise op is tested.
TEST_F(CheckElementwise, FieldsMustBeThere) {
  Swiglu op{.gate = f32({2, 8}), .up = f32({2, 8}), .out = f32({2, 8})};
  expect_accepted(op);
  op.up = {};
  expect_refused(op, {"swiglu", "'up'", "missing"});
}

TEST_F(CheckElementwise, PointersMustNotBeNull) {
  Add op{.a = f32({2, 8}), .b = f32({2, 8}), .out = f32({2, 8})};
  op.b.data = nullptr;
  expect_refused(op, {"add", "'b'", "null"});
}

TEST_F(CheckElementwise, AddressesMustBeAligned) {
  Add op{.a = f32({2, 8}), .b = f32({2, 8}), .out = f32({2, 8})};
  op.b.data = static_cast<const std::byte*>(op.b.data) + 2;
  op.b.shape = op.a.shape;
  expect_refused(op, {"add", "'b'", "multiple of 4"});
}

TEST_F(CheckElementwise, ShapesMustBeEqual) {
  SigmoidGate op{.x = f32({2, 8}), .gate = f32({2, 7}), .out = f32({2, 8})};
  expect_refused(op, {"sigmoid_gate", "'gate'", "[2,7]", "[2,8]"});
  op.gate = f32({16});
  expect_refused(op, {"sigmoid_gate", "'gate'", "[16]", "[2,8]"});
  op.gate = f32({2, 8});
  op.out = f32({8, 2});
  expect_refused(op, {"sigmoid_gate", "'out'", "[8,2]", "[2,8]"});
}

TEST_F(CheckElementwise, DimensionsMustNotBeEmpty) {
  const Add op{.a = f32({0, 8}), .b = f32({0, 8}), .out = f32({0, 8})};
  expect_refused(op, {"add", "'a'", "[0,8]", "at least 1"});
}

TEST_F(CheckElementwise, TypesMustBeActivations) {
  Add op{.a = f32({8}), .b = tensor(DType::i32, {8}), .out = f32({8})};
  expect_refused(op, {"add", "'b'", "I32", "F32 or BF16"});
  op.b = tensor(DType::f16, {8});
  expect_refused(op, {"add", "'b'", "F16", "F32 or BF16"});
}

TEST_F(CheckElementwise, OutputHasTheTypeOfTheFirstField) {
  Add op{.a = f32({8}), .b = tensor(DType::bf16, {8}), .out = tensor(DType::bf16, {8})};
  expect_refused(op, {"add", "'out'", "BF16", "'a'", "F32"});
  op.out = f32({8});
  expect_accepted(op);
}

TEST_F(CheckElementwise, StridesMustNotOverlapRows) {
  Add op{.a = f32({2, 8}), .b = f32({2, 8}), .out = f32({2, 8})};
  op.b.strides = {4, 1};
  expect_refused(op, {"add", "'b'", "[4,1]", "[2,8]"});
  op.b.strides = {8, 2};
  expect_refused(op, {"add", "'b'", "contiguous"});
}

TEST_F(CheckElementwise, OutputMayBeAnInputButNotPartOfIt) {
  const View a = f32({3, 8});
  Add op{.a = a, .b = f32({3, 8}), .out = a};
  expect_accepted(op);
  op.a = a.rows(0, 2);
  op.b = f32({2, 8});
  op.out = a.rows(1, 2);
  expect_refused(op, {"add", "'out'", "overlaps", "'a'"});
}

TEST_F(CheckElementwise, RmsNorm) {
  RmsNorm op{.x = f32({2, 3, 8}), .weight = f32({8}), .out = f32({2, 3, 8}), .eps = 1e-6};
  expect_accepted(op);
  op.eps = -1e-6;
  expect_refused(op, {"rms_norm", "'eps'", "-1e-06"});
  op.eps = std::numeric_limits<double>::quiet_NaN();
  expect_refused(op, {"rms_norm", "'eps'", "nan"});
  op.eps = 1e-6;
  op.weight = f32({7});
  expect_refused(op, {"rms_norm", "'weight'", "[7]", "[8]"});
  op.weight = tensor(DType::u8, {8});
  expect_refused(op, {"rms_norm", "'weight'", "U8", "F32, BF16 or F16"});
}

TEST_F(CheckElementwise, AddRmsNorm) {
  AddRmsNorm op{.residual = f32({2, 8}), .delta = f32({2, 8}), .weight = f32({8}), .out = f32({2, 8})};
  expect_accepted(op);
  op.weight = {};
  expect_refused(op, {"add_rms_norm", "'weight'", "missing"});
  op.weight = f32({8});
  op.eps = std::numeric_limits<double>::infinity();
  expect_refused(op, {"add_rms_norm", "'eps'", "inf"});
  op.eps = 1e-6;
  const View residual = op.residual;
  op.out = residual;
  expect_refused(op, {"add_rms_norm", "'residual'", "overlaps", "'out'"});
  op.out = f32({2, 8});
  op.delta = residual;
  expect_refused(op, {"add_rms_norm", "'residual'", "overlaps", "'delta'"});
  op.delta = f32({3, 8});
  expect_refused(op, {"add_rms_norm", "'delta'", "[3,8]", "[2,8]"});
}

TEST_F(CheckElementwise, GatedRmsNorm) {
  GatedRmsNorm op{
      .x = f32({2, 3, 8}), .z = f32({2, 3, 8}), .weight = f32({8}), .out = f32({2, 3, 8}), .eps = 1e-6};
  expect_accepted(op);
  op.weight = f32({3, 8});
  expect_refused(op, {"gated_rms_norm", "'weight'", "[3,8]", "[8]"});
  op.weight = f32({8});
  op.z = f32({2, 24});
  expect_refused(op, {"gated_rms_norm", "'z'", "[2,24]", "[2,3,8]"});
  op.z = f32({2, 3, 8});
  op.eps = -1;
  expect_refused(op, {"gated_rms_norm", "'eps'", "-1"});
}

TEST_F(CheckElementwise, QkL2Norm) {
  QkL2Norm op{.q = f32({2, 3, 8}), .k = f32({2, 3, 8}), .eps = 1e-6, .q_scale = 1, .k_scale = 1};
  expect_accepted(op);
  op.q_scale = std::numeric_limits<double>::infinity();
  expect_refused(op, {"qk_l2_norm", "'q_scale'", "inf"});
  op.q_scale = 1;
  op.k_scale = std::numeric_limits<double>::quiet_NaN();
  expect_refused(op, {"qk_l2_norm", "'k_scale'", "nan"});
  op.k_scale = 1;
  op.k = op.q;
  expect_refused(op, {"qk_l2_norm", "'q'", "overlaps", "'k'"});
  op.k = f32({2, 4, 8});
  expect_refused(op, {"qk_l2_norm", "'k'", "[2,4,8]", "[2,3,8]"});
}

TEST_F(CheckElementwise, QueriesAndKeysMayBeColumnsOfOneTensor) {
  const View wide = f32({2, 48});
  expect_accepted(QkL2Norm{.q = wide.columns(0, 24, {3, 8}), .k = wide.columns(24, 24, {3, 8})});
  expect_refused(QkL2Norm{.q = wide.columns(0, 24, {3, 8}), .k = wide.columns(16, 24, {3, 8})},
                 {"qk_l2_norm", "overlaps"});
}

TEST_F(CheckElementwise, QkNormRope) {
  QkNormRope op{.q = f32({2, 3, 8}),
                .k = f32({2, 1, 8}),
                .q_weight = f32({8}),
                .k_weight = f32({8}),
                .inv_freq = f32({4}),
                .positions = tensor(DType::i32, {2})};
  expect_accepted(op);
  op.inv_freq = f32({5});
  expect_refused(op, {"qk_norm_rope", "'inv_freq'", "5", "D = 8"});
  op.inv_freq = f32({4});
  op.k_weight = {};
  expect_refused(op, {"qk_norm_rope", "'k_weight'", "missing"});
  op.k_weight = f32({8});
  op.eps = -1;
  expect_refused(op, {"qk_norm_rope", "'eps'", "-1"});
  op.eps = 1e-6;
  op.k = f32({2, 1, 6});
  expect_refused(op, {"qk_norm_rope", "'k'", "[2,1,6]"});
}

TEST_F(CheckElementwise, Rope) {
  Rope op{.x = f32({2, 3, 8}), .inv_freq = f32({4}), .positions = tensor(DType::i32, {2})};
  expect_accepted(op);
  op.inv_freq = f32({5});
  expect_refused(op, {"rope", "'inv_freq'", "5", "D = 8"});
  op.inv_freq = tensor(DType::bf16, {4});
  expect_refused(op, {"rope", "'inv_freq'", "BF16", "F32"});
  op.inv_freq = f32({4});
  op.positions = tensor(DType::i32, {3});
  expect_refused(op, {"rope", "'positions'", "[3]", "[2]"});
  op.positions = f32({2});
  expect_refused(op, {"rope", "'positions'", "F32", "I32"});
  op.positions = tensor(DType::i32, {2});
  op.mscale = std::numeric_limits<double>::quiet_NaN();
  expect_refused(op, {"rope", "'mscale'", "nan"});
}

TEST_F(CheckElementwise, SplitQGate) {
  SplitQGate op{.x = f32({2, 3, 16}), .q = f32({2, 3, 8}), .gate = f32({2, 3, 8})};
  expect_accepted(op);
  op.gate = op.q;
  expect_refused(op, {"split_q_gate", "'q'", "overlaps", "'gate'"});
  op.gate = f32({2, 3, 8});
  op.x = f32({2, 3, 15});
  expect_refused(op, {"split_q_gate", "'x'", "[2,3,15]"});
}

TEST_F(CheckElementwise, RouteSoftmax) {
  const View logits = f32({2, 8});
  RouteSoftmax op{.logits = logits, .experts = tensor(DType::i32, {2, 3}), .weights = f32({2, 3}), .k = 3};
  expect_accepted(op);
  for (const std::int64_t k : {0, 9, -1}) {
    RouteSoftmax other = op;
    other.k = k;
    other.experts = tensor(DType::i32, {2, std::max<std::int64_t>(k, 1)});
    other.weights = f32({2, std::max<std::int64_t>(k, 1)});
    expect_refused(other, {"route_softmax", "'k' is " + std::to_string(k), "1 to 8"});
  }
  static_cast<float*>(logits.data)[11] = std::numeric_limits<float>::quiet_NaN();
  keep(logits);
  expect_refused(op, {"route_softmax", "'logits'", "NaN", "[1,3]"});
}

TEST_F(CheckElementwise, RouteSigmoid) {
  const View logits = f32({2, 8});
  const View bias = f32({8});
  RouteSigmoid op{.logits = logits,
                  .bias = bias,
                  .experts = tensor(DType::i32, {2, 3}),
                  .weights = f32({2, 3}),
                  .k = 3,
                  .groups = 4,
                  .top_groups = 2};
  expect_accepted(op);
  keep(logits);
  keep(bias);
  RouteSigmoid other = op;
  other.groups = 3;
  expect_refused(other, {"route_sigmoid", "'groups' is 3", "E = 8"});
  other.groups = 0;
  expect_refused(other, {"route_sigmoid", "'groups' is 0", "E = 8"});
  other = op;
  for (const std::int64_t top_groups : {0, 5}) {
    other.top_groups = top_groups;
    expect_refused(other, {"route_sigmoid", "'top_groups' is " + std::to_string(top_groups), "1 to 4"});
  }
  for (const std::int64_t k : {-1, 0, 5}) {
    other = op;
    other.k = k;
    expect_refused(other, {"route_sigmoid", "'k' is " + std::to_string(k), "1 to 4"});
  }
  other = op;
  other.top_groups = 1;
  expect_refused(other, {"route_sigmoid", "'k'", "3", "1 to 2"});
  other = op;
  other.scale = std::numeric_limits<double>::infinity();
  expect_refused(other, {"route_sigmoid", "'scale'", "inf"});
  other = op;
  other.bias = f32({7});
  expect_refused(other, {"route_sigmoid", "'bias'", "[7]", "[8]"});
  static_cast<float*>(bias.data)[5] = -std::numeric_limits<float>::infinity();
  expect_refused(op, {"route_sigmoid", "'bias'", "-inf", "[5]"});
  static_cast<float*>(bias.data)[5] = 0;
  static_cast<float*>(logits.data)[9] = std::numeric_limits<float>::quiet_NaN();
  expect_refused(op, {"route_sigmoid", "'logits'", "NaN", "[1,1]"});
}

TEST_F(CheckElementwise, MoeCombine) {
  MoeCombine op{.residual = f32({2, 8}),
                .expert_out = f32({2, 3, 8}),
                .weights = f32({2, 3}),
                .shared_out = f32({2, 8}),
                .shared_gate = f32({2}),
                .out = f32({2, 8})};
  expect_accepted(op);
  op.shared_out = {};
  expect_refused(op, {"moe_combine", "'shared_gate'", "'shared_out'"});
  op.shared_gate = {};
  expect_accepted(op);
  op.weights = f32({2, 4});
  expect_refused(op, {"moe_combine", "'weights'", "[2,4]", "[2,3]"});
  op.weights = tensor(DType::bf16, {2, 3});
  expect_refused(op, {"moe_combine", "'weights'", "BF16", "F32"});
  op.weights = f32({2, 0});
  op.expert_out = f32({2, 0, 8});
  expect_accepted(op);
}

TEST_F(CheckElementwise, MoeScatterAdd) {
  const View ids = tensor(DType::i32, {3});
  MoeScatterAdd op{.bucket_out = f32({3, 8}), .token_idx = ids, .weights = f32({3}), .sum = f32({2, 8})};
  expect_accepted(op);
  keep(ids);
  for (const std::int32_t id : {2, -1}) {
    static_cast<std::int32_t*>(ids.data)[1] = id;
    expect_refused(op, {"moe_scatter_add", "'token_idx'", std::to_string(id), "[1]", "0 to 1"});
  }
  static_cast<std::int32_t*>(ids.data)[1] = 0;
  op.sum = f32({2, 9});
  expect_refused(op, {"moe_scatter_add", "'sum'", "[2,9]"});
}

TEST_F(CheckElementwise, MlaSplit) {
  MlaSplit op{.q_full = f32({2, 3, 12}),
              .kv_pre = f32({2, 20}),
              .q_nope = f32({2, 3, 8}),
              .q_pe = f32({2, 3, 4}),
              .kv_latent = f32({2, 16}),
              .k_pe = f32({2, 4}),
              .nope = 8,
              .rope = 4};
  expect_accepted(op);
  MlaSplit other = op;
  other.nope = 9;
  expect_refused(other, {"mla_split", "'q_full'", "[2,3,12]"});
  other = op;
  other.rope = 0;
  expect_refused(other, {"mla_split", "'rope' is 0", "1 to 11"});
  other = op;
  other.rope = 20;
  expect_refused(other, {"mla_split", "'rope' is 20", "1 to 11"});
  other = op;
  other.k_pe = f32({2, 5});
  expect_refused(other, {"mla_split", "'k_pe'", "[2,5]", "[2,4]"});
}

}  // namespace
}  // namespace sluice::ops
