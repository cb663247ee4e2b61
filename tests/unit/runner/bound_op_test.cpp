// Requirements of the op runner on a file beyond the op's contract, and the messages.
#include "runner/bound_op.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "expect_error.h"
#include "runner/random_tensor.h"
#include "sluice/op_runner.h"
#include "sluice/ops/backend.h"

namespace sluice::runner {
namespace {

using ops::DType;

class BoundOpTest : public ::testing::Test {
 protected:
  void refused(const std::string& op, const OpFile& file, std::initializer_list<std::string_view> parts) {
    expect_error(ErrorKind::input, {op}, [&] { run_op(*backend_, op, file); });
    expect_error(ErrorKind::input, parts, [&] { run_op(*backend_, op, file); });
  }
  std::unique_ptr<ops::Backend> backend_ = ops::make_backend("cpu", {.threads = 1});
  Random random_{3};
};

TEST_F(BoundOpTest, NumbersMayHaveASign) {
  OpFile file;
  file.tensors["x"] = normal(random_, DType::f32, {2, 8});
  file.attributes["eps"] = "1e-6";
  const HostTensor expected = run_op(*backend_, "rms_norm", file).tensors.at("out");
  file.attributes["eps"] = "+1e-6";
  EXPECT_EQ(run_op(*backend_, "rms_norm", file).tensors.at("out").bytes, expected.bytes);
  for (const char* text : {"", "+", "++1", "+-1", "1e-6x", " 1"}) {
    file.attributes["eps"] = text;
    refused("rms_norm", file, {"'eps'", "'" + std::string(text) + "'", "decimal number"});
  }
}

TEST_F(BoundOpTest, DenseWeightsHaveNoFormat) {
  for (const char* attribute : {"w.mode", "w.bits", "w.group_size"}) {
    OpFile file;
    file.tensors["x"] = normal(random_, DType::f32, {2, 64});
    file.tensors["w"] = normal(random_, DType::f32, {3, 64});
    EXPECT_NO_THROW(run_op(*backend_, "matmul", file));
    file.attributes[attribute] = "4";
    refused("matmul", file, {attribute, "'w.weight'", "dense"});
  }
}

TEST_F(BoundOpTest, OneNumberDoesNotServeSeveralSequences) {
  OpFile file;
  file.tensors["q"] = normal(random_, DType::f32, {2, 1, 8});
  file.tensors["k_cache"] = normal(random_, DType::f32, {2, 4, 1, 8});
  file.tensors["v_cache"] = normal(random_, DType::f32, {2, 4, 1, 8});
  file.tensors["seq_starts"] = indices({0, 1, 2});
  file.attributes["scale"] = "1";
  file.attributes["start"] = "0";
  refused("attention", file, {"'start'", "one number", "I32 [B]"});
  file.attributes.erase("start");
  file.tensors["start"] = indices({0, 3});
  EXPECT_NO_THROW(run_op(*backend_, "attention", file));
}

// Shapes of outputs follow from attributes, but the message is about the attribute.
TEST_F(BoundOpTest, AttributesThatSizeOutputs) {
  OpFile file;
  file.tensors["x"] = normal(random_, DType::f32, {2, 1, 32});
  for (const char* bits : {"0", "-4", "7"}) {
    file.attributes["bits"] = bits;
    refused("turboquant_encode", file, {"'bits' is " + std::string(bits), "2, 3, 4, 5, 6 or 8"});
  }
  file = {};
  file.tensors["logits"] = normal(random_, DType::f32, {2, 8});
  for (const char* k : {"0", "-1", "9"}) {
    file.attributes["k"] = k;
    refused("route_softmax", file, {"'k' is " + std::string(k), "1 to 8"});
  }
  file = {};
  file.tensors["k"] = normal(random_, DType::f32, {1, 5, 1, 32});
  file.tensors["beta"] = normal(random_, DType::f32, {1, 5, 1});
  file.tensors["g"] = normal(random_, DType::f32, {1, 5, 1});
  for (const char* chunk : {"0", "-64", "65537", "4611686018427387904"}) {
    file.attributes["chunk"] = chunk;
    refused("delta_kkt", file, {"'chunk' is " + std::string(chunk), "1 to 65536"});
  }
  file = {};
  file.tensors["q_nope"] = normal(random_, DType::f32, {2, 2, 32});
  refused("mla_absorb_q", file, {"neither", "'kv_b'", "'embed_q'"});
  file.tensors["kv_b"] = normal(random_, DType::f32, {2 * 48, 64});
  refused("mla_absorb_q", file, {"'v' is 0", "allowed is 1"});
  file = {};
  file.tensors["latent"] = normal(random_, DType::f32, {2, 2, 64});
  refused("mla_project_out", file, {"neither", "'kv_b'", "'unembed_out'"});
  file.tensors["kv_b"] = normal(random_, DType::f32, {2 * 48, 64});
  refused("mla_project_out", file, {"'nope' is 0", "allowed is 1"});
}

TEST(RunOpFile, KnowsTheOpBeforeTheFile) {
  expect_error(ErrorKind::input, {"no op 'matmal'", "--list"},
               [] { run_op_file("matmal", "nowhere.safetensors", "out.safetensors", "cpu"); });
}

TEST(DescribeOp, ShowsTheFormatsOfWeights) {
  const OpDescription op = describe_op("matmul");
  ASSERT_EQ(op.attributes.size(), 3u);
  EXPECT_EQ(op.attributes[0].name, "w.mode");
  EXPECT_EQ(op.attributes[0].type, "affine, mxfp4, mxfp8, nvfp4");
  EXPECT_EQ(op.attributes[1].name, "w.bits");
  EXPECT_EQ(op.attributes[1].type, "affine: 2, 3, 4, 5, 6, 8; mxfp4: 4; mxfp8: 8; nvfp4: 4");
  EXPECT_EQ(op.attributes[2].name, "w.group_size");
}

TEST(DescribeOp, ShowsTheTypeOfOutputsWithoutActivations) {
  for (const char* name : {"embed", "turboquant_decode"})
    EXPECT_EQ(describe_op(name).fields.back().types, "F32 (default), BF16") << name;
  EXPECT_EQ(describe_op("matmul").fields.back().types, "F32, BF16");
}

}  // namespace
}  // namespace sluice::runner
