// Errors of the linear ops: the message names the op, the field, what was given and what is allowed, and
// nothing is written.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "expect_error.h"
#include "sluice/ops/backend.h"

namespace sluice::ops {
namespace {

// Memory for any operand; outputs are in `out` and must keep their poison.
struct Operands {
  std::vector<float> floats = std::vector<float>(65536, 0.5f);
  std::vector<std::uint32_t> words = std::vector<std::uint32_t>(65536, 0x12345678u);
  std::vector<std::int32_t> ids = std::vector<std::int32_t>(64, 0);
  std::vector<float> out = std::vector<float>(65536, NAN);

  ConstView f32(const Shape& shape) const { return {floats.data(), DType::f32, shape}; }
  ConstView f32_at(std::int64_t offset, const Shape& shape) const {
    return {floats.data() + offset, DType::f32, shape};
  }
  ConstView u32(const Shape& shape) const { return {words.data(), DType::u32, shape}; }
  ConstView i32(const Shape& shape) const { return {ids.data(), DType::i32, shape}; }
  View output(const Shape& shape) { return {out.data(), DType::f32, shape}; }
  Weight dense(const Shape& shape) const {
    Weight weight;
    weight.values = f32(shape);
    return weight;
  }
  // 4 bits in groups of 64; `shape` is the logical shape.
  Weight packed(Shape shape) const {
    Weight weight;
    const std::int64_t columns = shape.back();
    shape[shape.rank() - 1] = columns / 8;
    weight.values = u32(shape);
    shape[shape.rank() - 1] = columns / 64;
    weight.scales = f32(shape);
    weight.biases = f32(shape);
    return weight;
  }

  template <class Op>
  void refuse(const Op& op, std::initializer_list<std::string_view> parts) {
    for (const char* name : {"reference", "cpu"}) {
      const auto backend = make_backend(name, {.threads = 1});
      expect_error(ErrorKind::input, {Op::kName}, [&] { backend->run(op); });
      expect_error(ErrorKind::input, parts, [&] { backend->run(op); });
    }
    for (const float value : out) ASSERT_TRUE(std::isnan(value));
  }
};

Matmul good_matmul(Operands& o) {
  Matmul op;
  op.x = o.f32({2, 64});
  op.w = o.packed({8, 64});
  op.out = o.output({2, 8});
  return op;
}

TEST(CheckMatmul, GoodOneRuns) {
  Operands o;
  make_backend("cpu", {.threads = 1})->run(good_matmul(o));
  EXPECT_FALSE(std::isnan(o.out[15]));
  EXPECT_TRUE(std::isnan(o.out[16]));
}

TEST(CheckMatmul, Shapes) {
  Operands o;
  Matmul op = good_matmul(o);
  op.x = o.f32({2, 1, 64});
  o.refuse(op, {"'x'", "[2,1,64]"});
  op = good_matmul(o);
  op.x = o.f32({2, 128});
  o.refuse(op, {"'w'", "[8,64]", "128"});
  op = good_matmul(o);
  op.out = o.output({2, 9});
  o.refuse(op, {"'out'", "[2,9]", "8"});
  op = good_matmul(o);
  op.out = o.output({3, 8});
  o.refuse(op, {"'out'", "[3,8]", "2"});
}

TEST(CheckMatmul, TypesAndPointers) {
  Operands o;
  Matmul op = good_matmul(o);
  op.x.dtype = DType::f16;
  o.refuse(op, {"'x'", "F16", "F32 or BF16"});
  op = good_matmul(o);
  op.out.dtype = DType::bf16;
  o.refuse(op, {"'out'", "BF16", "F32"});
  op = good_matmul(o);
  op.x.data = nullptr;
  o.refuse(op, {"'x'", "null"});
  op = good_matmul(o);
  op.w = {};
  o.refuse(op, {"'w'", "missing"});
  op = good_matmul(o);
  op.w.values.data = nullptr;
  o.refuse(op, {"'w", "null"});
  op = good_matmul(o);
  op.w = o.dense({8, 64});
  op.w.values.dtype = DType::i32;
  o.refuse(op, {"'w'", "I32", "F32, BF16 or F16"});
}

TEST(CheckMatmul, Overlap) {
  Operands o;
  Matmul op = good_matmul(o);
  op.x = ConstView(o.out.data() + 8, DType::f32, {2, 64});
  o.refuse(op, {"'out'", "'x'", "overlaps"});
  op = good_matmul(o);
  op.w.scales.data = o.out.data() + 1;
  o.refuse(op, {"'out'", "'w'", "overlaps"});
}

TEST(CheckMatmul, WeightFormats) {
  Operands o;
  Matmul op = good_matmul(o);
  op.w.bits = 7;
  o.refuse(op, {"'w'", "7 bits", "affine allows 2, 3, 4, 5, 6, 8"});
  op = good_matmul(o);
  op.w.group_size = 48;
  o.refuse(op, {"'w'", "48", "affine allows 32, 64, 128"});
  op = good_matmul(o);
  op.w.mode = QuantMode::mxfp4;
  o.refuse(op, {"'w'", "groups of 64", "mxfp4 allows 32"});
  op = good_matmul(o);
  op.w.values = o.u32({8, 9});
  o.refuse(op, {"'w.weight'", "9 words"});
  op = good_matmul(o);
  op.w.scales = o.f32({8, 2});
  o.refuse(op, {"'w.scales'", "[8,2]", "[8,1]"});
  op = good_matmul(o);
  op.w.biases = {};
  o.refuse(op, {"'w'", "lacks biases"});
  op = good_matmul(o);
  op.w.biases.dtype = DType::i32;
  o.refuse(op, {"'w.biases'", "I32", "F32, BF16 or F16"});
  op = good_matmul(o);
  op.w.scales = {};
  o.refuse(op, {"'w'", "lacks scales"});
  op = good_matmul(o);
  op.w.values = ConstView(o.words.data(), DType::u32, {8, 8}, {16, 1});
  o.refuse(op, {"'w.weight'", "contiguous"});
}

TEST(CheckEmbed, IdsAndShapes) {
  Operands o;
  Embed op;
  op.table = o.packed({4, 64});
  op.ids = o.i32({3});
  op.out = o.output({3, 64});
  o.ids[1] = 4;
  o.refuse(op, {"'ids'", "4 at [1]", "0 to 3"});
  o.ids[1] = -1;
  o.refuse(op, {"'ids'", "-1 at [1]"});
  o.ids[1] = 0;
  op.out = o.output({3, 32});
  o.refuse(op, {"'out'", "[3,32]", "64"});
}

TEST(CheckExpertMatmul, IdsAndShapes) {
  Operands o;
  ExpertMatmul op;
  op.x = o.f32({2, 64});
  op.w.stack = o.packed({3, 8, 64});
  op.experts = o.i32({2, 2});
  op.out = o.output({2, 2, 8});
  o.ids[3] = 3;
  o.refuse(op, {"'experts'", "3 at [1,1]", "0 to 2"});
  o.ids[3] = 0;
  op.x = o.f32({2, 3, 64});
  o.refuse(op, {"'experts'", "[2,2]", "3"});
  op.x = o.f32({2, 64});
  op.experts = o.i32({2, 0});
  o.refuse(op, {"'experts'", "[2,0]", "at least 1"});
  op.experts = o.i32({2, 2});
  const std::vector<Weight> separate = {o.packed({8, 64}), o.packed({8, 128})};
  op.w.separate = separate;
  o.refuse(op, {"'w'", "both"});
  op.w.stack = {};
  o.refuse(op, {"'w'", "differ", "[8,64]", "[8,128]"});
  std::vector<Weight> alike = {o.packed({8, 64}), o.packed({8, 64}), o.packed({8, 64})};
  op.w.separate = alike;
  alike[2].scales.data = nullptr;
  o.refuse(op, {"'w.scales'", "null pointer"});
  alike[2] = o.packed({8, 64});
  alike[2].biases.strides[0] = 5;
  o.refuse(op, {"'w.biases'", "strides [5,1]", "contiguous"});
}

TEST(CheckGateUpSwiglu, Shapes) {
  Operands o;
  GateUpSwiglu op;
  op.x = o.f32({2, 64});
  op.gate_w = o.packed({8, 64});
  op.up_w = o.packed({9, 64});
  op.out = o.output({2, 8});
  o.refuse(op, {"'up_w'", "[9,64]", "8"});
  op.up_w = {};
  o.refuse(op, {"'up_w'", "missing"});
}

TEST(CheckExpertGateUpSwiglu, IdsAndShapes) {
  Operands o;
  ExpertGateUpSwiglu op;
  op.x = o.f32({2, 64});
  op.gate_w.stack = o.packed({3, 8, 64});
  op.up_w.stack = o.packed({2, 8, 64});
  op.experts = o.i32({2, 2});
  op.out = o.output({2, 2, 8});
  o.refuse(op, {"'up_w'", "[2,8,64]", "3"});
  op.up_w.stack = o.packed({3, 8, 64});
  o.ids[0] = 7;
  o.refuse(op, {"'experts'", "7 at [0,0]", "0 to 2"});
}

TEST(CheckMlaAbsorbQ, OneWeightAndItsRows) {
  Operands o;
  MlaAbsorbQ op;
  op.q_nope = o.f32({2, 2, 64});
  op.q_latent = o.output({2, 2, 64});
  o.refuse(op, {"neither", "'kv_b'", "'embed_q'", "exactly one"});
  op.embed_q = o.packed({2, 64, 64});
  op.kv_b = o.packed({2 * 96, 64});
  op.v = 32;
  o.refuse(op, {"both", "'kv_b'", "'embed_q'", "exactly one"});
  op.embed_q = {};
  op.v = 16;
  o.refuse(op, {"'kv_b'", "[192,64]", "160"});
  op.v = 0;
  op.kv_b = o.packed({2 * 64, 64});
  o.refuse(op, {"'v' is 0", "allowed is 1"});
}

TEST(CheckMlaProjectOut, OneWeightAndItsRows) {
  Operands o;
  MlaProjectOut op;
  op.latent = o.f32({2, 2, 64});
  op.out = o.output({2, 2, 32});
  o.refuse(op, {"neither", "'kv_b'", "'unembed_out'", "exactly one"});
  op.kv_b = o.packed({2 * 96, 64});
  op.nope = 200;
  o.refuse(op, {"'kv_b'", "[192,64]"});
  op.nope = 0;
  op.out = o.output({2, 2, 96});
  o.refuse(op, {"'nope' is 0", "allowed is 1"});
  op.nope = 64;
  op.kv_b.bits = 0;
  o.refuse(op, {"'kv_b'", "0 bits"});
}

}  // namespace
}  // namespace sluice::ops
