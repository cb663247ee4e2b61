// Conversions that must fail: one clear error each, and nothing left on disk.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <functional>

#include "expect_error.h"
#include "sluice/convert.h"
#include "temporary_folder.h"
#include "tiny_checkpoint.h"

namespace sluice {
namespace {

using checkpoint::FileDType;

class ConvertBroken : public testing::Test {
 protected:
  void expect_refused(ErrorKind kind, std::initializer_list<std::string_view> parts,
                      const TinyCheckpoint& checkpoint, const ConvertOptions& options = {}) {
    const TemporaryFolder folder;
    const auto in = checkpoint.write(folder.path() / "in");
    expect_error(kind, parts, [&] { convert_checkpoint(in, folder.path() / "out", options); });
    EXPECT_EQ(folder.count(), 1U) << "something is left beside the input";
  }

  TinyCheckpoint qwen{"qwen3_5_moe"};
  TinyCheckpoint deepseek{"deepseek_v3_fp8"};
};

void remove(TinyCheckpoint& checkpoint, std::string_view name) {
  std::erase_if(checkpoint.tensors, [name](const auto& tensor) { return tensor.name == name; });
}

TEST_F(ConvertBroken, UnknownFamily) {
  qwen.config["model_type"] = "llama";
  expect_refused(ErrorKind::unsupported, {"'llama'", "qwen3_5_moe"}, qwen);
}

TEST_F(ConvertBroken, MissingTensor) {
  remove(qwen, "model.language_model.layers.1.self_attn.k_proj.weight");
  expect_refused(ErrorKind::checkpoint, {"lacks", "layers.1.self_attn.k_proj.weight"}, qwen);
}

TEST_F(ConvertBroken, MissingExpert) {
  remove(deepseek, "model.layers.1.mlp.experts.3.up_proj.weight");
  expect_refused(ErrorKind::checkpoint, {"lacks", "experts.3.up_proj.weight"}, deepseek);
}

TEST_F(ConvertBroken, UnknownTensor) {
  qwen.tensors.push_back({"model.language_model.layers.0.mlp.adapter.weight", FileDType::bf16, {4, 4}});
  expect_refused(ErrorKind::unsupported, {"mlp.adapter.weight", "no part"}, qwen);
}

TEST_F(ConvertBroken, MoreLayersThanConfigured) {
  qwen.config["text_config"]["num_hidden_layers"] = 1;
  expect_refused(ErrorKind::unsupported, {"layers.1."}, qwen);
}

TEST_F(ConvertBroken, MoreExpertsThanConfigured) {
  deepseek.config["n_routed_experts"] = 3;
  expect_refused(ErrorKind::unsupported, {"experts.3."}, deepseek);
}

TEST_F(ConvertBroken, NoLayers) {
  qwen.config["text_config"]["num_hidden_layers"] = 0;
  expect_refused(ErrorKind::checkpoint, {"num_hidden_layers", "0"}, qwen);
}

TEST_F(ConvertBroken, UnevenExperts) {
  deepseek.tensor("model.layers.1.mlp.experts.2.gate_proj.weight").shape = {63, 192};
  expect_refused(ErrorKind::checkpoint, {"experts.2.gate_proj.weight", "[63,192]", "[64,192]"}, deepseek);
}

TEST_F(ConvertBroken, OddFusedExperts) {
  qwen.tensor("model.language_model.layers.0.mlp.experts.gate_up_proj").shape = {3, 63, 64};
  expect_refused(ErrorKind::checkpoint, {"gate_up_proj", "63"}, qwen);
}

TEST_F(ConvertBroken, WrongDimensions) {
  qwen.tensor("model.language_model.layers.0.linear_attn.out_proj.weight").shape = {64, 64, 1};
  expect_refused(ErrorKind::checkpoint, {"out_proj.weight", "[64,64,1]", "2 dimensions"}, qwen);
  qwen.tensor("model.language_model.norm.weight").shape = {};
  expect_refused(ErrorKind::checkpoint, {"out_proj.weight"}, qwen);
}

TEST_F(ConvertBroken, WideConvolution) {
  qwen.tensor("model.language_model.layers.0.linear_attn.conv1d.weight").shape = {128, 2, 4};
  expect_refused(ErrorKind::checkpoint, {"conv1d.weight", "[128,2,4]", "channels"}, qwen);
}

TEST_F(ConvertBroken, EmptyTensor) {
  qwen.tensor("lm_head.weight").shape = {0, 64};
  expect_refused(ErrorKind::checkpoint, {"lm_head.weight", "[0,64]"}, qwen);
}

TEST_F(ConvertBroken, IntegerWeights) {
  qwen.tensor("lm_head.weight").dtype = FileDType::i32;
  expect_refused(ErrorKind::unsupported, {"lm_head.weight", "I32"}, qwen);
}

TEST_F(ConvertBroken, MissingBlockScales) {
  remove(deepseek, "model.layers.0.self_attn.o_proj.weight_scale_inv");
  expect_refused(ErrorKind::checkpoint, {"o_proj.weight_scale_inv"}, deepseek);
}

TEST_F(ConvertBroken, WrongBlockScales) {
  deepseek.tensor("model.layers.0.self_attn.o_proj.weight_scale_inv").shape = {2, 1};
  expect_refused(ErrorKind::checkpoint, {"o_proj.weight_scale_inv", "[2,1]", "[2,2]"}, deepseek);
}

TEST_F(ConvertBroken, WrongLatentProjection) {
  deepseek.config["v_head_dim"] = 64;
  expect_refused(ErrorKind::checkpoint, {"kv_b_proj.weight", "320", "2 heads of 64 + 64"}, deepseek);
}

TEST_F(ConvertBroken, QuantizedAlready) {
  qwen.config["quantization"] = {{"bits", 4}, {"group_size", 64}};
  expect_refused(ErrorKind::unsupported, {"already", "4 bits"}, qwen);
}

TEST_F(ConvertBroken, RouterThatDoesNotFitItsGroups) {
  TinyCheckpoint dense("qwen3_moe");
  for (auto& tensor : dense.tensors)
    if (tensor.shape.size() == 2 && tensor.name.ends_with("mlp.gate.weight")) tensor.shape[1] = 96;
  expect_refused(ErrorKind::unsupported, {"mlp.gate", "64", "96"}, dense, {.group_size = 32});
}

TEST_F(ConvertBroken, Options) {
  expect_refused(ErrorKind::input, {"7 bits"}, qwen, {.bits = 7});
  expect_refused(ErrorKind::input, {"groups of 48"}, qwen, {.group_size = 48});
  expect_refused(ErrorKind::input, {"'mixed_1_2'", "mixed_4_6"}, qwen, {.mixed = "mixed_1_2"});
  expect_refused(ErrorKind::input, {"'int8'"}, qwen, {.dtype = "int8"});
}

TEST_F(ConvertBroken, OutputExists) {
  const TemporaryFolder folder;
  const auto in = qwen.write(folder.path() / "in");
  expect_error(ErrorKind::input, {"exists"}, [&] { convert_checkpoint(in, in, {}); });
  expect_error(ErrorKind::input, {"exists"}, [&] { convert_checkpoint(in, folder.write("file", "x"), {}); });
  expect_error(ErrorKind::input, {"none/out"},
               [&] { convert_checkpoint(in, folder.path() / "none/out", {}); });
  std::filesystem::create_directory(folder.path() / "empty");
  convert_checkpoint(in, folder.path() / "empty/", {});
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "empty/config.json"));
  EXPECT_EQ(folder.count(), 3U);
}

TEST_F(ConvertBroken, FullDisk) {
  const TemporaryFolder folder;
  const auto in = qwen.write(folder.path() / "in");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{10000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_error(ErrorKind::resource, {"model.safetensors"},
               [&] { convert_checkpoint(in, folder.path() / "out", {}); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(folder.count(), 1U);
}

}  // namespace
}  // namespace sluice
