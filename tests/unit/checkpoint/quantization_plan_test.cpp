#include "checkpoint/quantization_plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "expect_error.h"

namespace sluice::checkpoint {
namespace {

QuantizationPlan parse(std::string_view text) {
  return {parse_json(text, "config.json"), "config.json"};
}

constexpr QuantParams kAffine4{QuantMode::affine, 4, 64};
constexpr QuantParams kAffine8{QuantMode::affine, 8, 64};

TEST(QuantizationPlan, AbsentBlockMeansNoneIsQuantised) {
  const QuantizationPlan plan = parse(R"({"hidden_size": 1})");
  EXPECT_EQ(plan.params("a", false), std::nullopt);
  EXPECT_EQ(plan.globals(), std::nullopt);
  EXPECT_EQ(plan.fp8(), std::nullopt);
  expect_error(ErrorKind::checkpoint, {"'a.scales'", "config.json"}, [&] { plan.params("a", true); });
}

TEST(QuantizationPlan, GlobalsHoldWhereScalesExist) {
  const QuantizationPlan plan = parse(R"({"quantization": {"group_size": 32, "bits": 3, "model.norm": false,
                                          "lm_head": true, "note": "made by hand", "quantize_activations": true}})");
  const QuantParams expected{QuantMode::affine, 3, 32};
  EXPECT_EQ(plan.globals(), expected);
  EXPECT_EQ(plan.params("model.layers.0.mlp", true), expected);
  EXPECT_EQ(plan.params("model.layers.0.mlp", false), std::nullopt);
  for (const char* module : {"model.norm", "lm_head"}) {  // a bool has no effect
    EXPECT_EQ(plan.params(module, true), expected);
    EXPECT_EQ(plan.params(module, false), std::nullopt);
  }
}

TEST(QuantizationPlan, AnOverrideReplacesTheGlobalsCompletely) {
  const QuantizationPlan plan = parse(R"({"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4",
      "gate": {"group_size": 64, "bits": 8}, "up": {}, "down": {"mode": "nvfp4"}, "out": {"bits": 6, "mode": null}}})");
  EXPECT_EQ(plan.params("other", true), (QuantParams{QuantMode::mxfp4, 4, 32}));
  EXPECT_EQ(plan.params("gate", true), kAffine8);
  EXPECT_EQ(plan.params("up", true), kAffine4);
  EXPECT_EQ(plan.params("down", true), (QuantParams{QuantMode::nvfp4, 4, 16}));
  EXPECT_EQ(plan.params("out", true), (QuantParams{QuantMode::affine, 6, 64}));
  expect_error(ErrorKind::checkpoint, {"'gate'", "'gate.scales'"}, [&] { plan.params("gate", false); });
}

TEST(QuantizationPlan, ModesHaveDefaults) {
  const auto globals = [](std::string_view mode) {
    return parse(fmt::format(R"({{"quantization": {{"mode": "{}"}}}})", mode)).globals().value();
  };
  EXPECT_EQ(globals("affine"), kAffine4);
  EXPECT_EQ(globals("mxfp4"), (QuantParams{QuantMode::mxfp4, 4, 32}));
  EXPECT_EQ(globals("nvfp4"), (QuantParams{QuantMode::nvfp4, 4, 16}));
  EXPECT_EQ(globals("mxfp8"), (QuantParams{QuantMode::mxfp8, 8, 32}));
}

TEST(QuantizationPlan, FindsTheBlockWhereverItIs) {
  EXPECT_EQ(parse(R"({"quantization_config": {"bits": 8, "group_size": 64}})").globals(), kAffine8);
  EXPECT_EQ(parse(R"({"text_config": {"quantization_config": {"bits": 8}}})").globals(), kAffine8);
  EXPECT_EQ(
      parse(R"({"quantization": {"bits": 8}, "quantization_config": {"quant_method": "awq"}})").globals(),
      kAffine8);
  EXPECT_EQ(parse(R"({"quantization": null})").globals(), std::nullopt);
}

TEST(QuantizationPlan, HuggingFaceFp8) {
  const QuantizationPlan plan = parse(R"({"quantization_config": {"quant_method": "fp8", "fmt": "e4m3",
                                          "weight_block_size": [128, 64], "activation_scheme": "dynamic"}})");
  EXPECT_EQ(plan.fp8(), (Fp8Blocks{128, 64}));
  EXPECT_EQ(plan.params("a", false), std::nullopt);
  EXPECT_EQ(parse(R"({"quantization_config": {"quant_method": "mxfp4"}})").globals(),
            (QuantParams{QuantMode::mxfp4, 4, 32}));
}

TEST(QuantizationPlan, RefusesWhatItDoesNotKnow) {
  const auto refuse = [](std::string_view text, std::initializer_list<std::string_view> parts,
                         ErrorKind kind = ErrorKind::unsupported) {
    SCOPED_TRACE(text);
    expect_error(kind, {"config.json"}, [&] { parse(text); });
    expect_error(kind, parts, [&] { parse(text); });
  };
  refuse(R"({"quantization": {"mode": "q4_k"}})", {"'q4_k'", "affine"});
  refuse(R"({"quantization": {"bits": 7}})", {"7 bits", "2, 3, 4, 5, 6, 8"});
  refuse(R"({"quantization": {"group_size": 0}})", {"groups of 0"});
  refuse(R"({"quantization": {"mode": "mxfp4", "group_size": 64}})",
         {"groups of 64", "4 bits in groups of 32"});
  refuse(R"({"quantization": {"x": {"bits": 4, "rotate": 1}}})", {"'x'", "'rotate'"});
  refuse(R"({"quantization": {"x": {"bits": 9}}})", {"'x'", "9 bits"});
  refuse(R"({"quantization": 4})", {"expected an object"}, ErrorKind::checkpoint);
  refuse(R"({"quantization": {"bits": "4"}})", {"'bits'", "integer"}, ErrorKind::checkpoint);
  refuse(R"({"quantization_config": {"quant_method": "awq"}})", {"'awq'"});
  refuse(R"({"quantization_config": {"quant_method": "fp8", "fmt": "e5m2", "weight_block_size": [1, 1]}})",
         {"'e5m2'"});
  refuse(R"({"quantization_config": {"quant_method": "fp8"}})", {"weight_block_size"}, ErrorKind::checkpoint);
  refuse(R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128]}})", {"two positive"},
         ErrorKind::checkpoint);
  refuse(R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [0, 128]}})",
         {"two positive"}, ErrorKind::checkpoint);
}

TEST(CheckQuantized, AcceptsWhatFits) {
  const TensorInfo scales{"s", FileDType::bf16, {256, 512, 32}};
  EXPECT_NO_THROW(check_quantized("m", kAffine4, {"w", FileDType::u32, {256, 512, 256}}, scales, &scales));
  EXPECT_NO_THROW(check_quantized("m", {QuantMode::affine, 3, 64}, {"w", FileDType::u32, {256, 512, 192}},
                                  scales, &scales));
  EXPECT_NO_THROW(check_quantized("m", {QuantMode::nvfp4, 4, 16}, {"w", FileDType::u32, {8, 4}},
                                  {"s", FileDType::u8, {8, 2}}, nullptr));
}

TEST(CheckQuantized, RefusesWhatDoesNot) {
  const TensorInfo weight{"w", FileDType::u32, {8, 16}};
  const TensorInfo scales{"s", FileDType::f16, {8, 2}};
  ASSERT_NO_THROW(check_quantized("m.x", kAffine4, weight, scales, &scales));
  const auto refuse = [](const QuantParams& params, const TensorInfo& w, const TensorInfo& s,
                         const TensorInfo* b, std::string_view part) {
    expect_error(ErrorKind::checkpoint, {"'m.x'", part}, [&] { check_quantized("m.x", params, w, s, b); });
  };
  refuse(kAffine8, weight, scales, &scales, "[8, 16]");
  refuse(kAffine4, {"w", FileDType::u32, {7, 16}}, scales, &scales, "do not fit");
  refuse(kAffine4, {"w", FileDType::u32, {1, 8, 16}}, scales, &scales, "do not fit");
  refuse(kAffine4, {"w", FileDType::bf16, {8, 16}}, scales, &scales, "expected U32");
  constexpr int64_t kHuge = int64_t{1} << 60;
  const TensorInfo no_scales{"s", FileDType::f16, {0, kHuge}};
  refuse(kAffine4, {"w", FileDType::u32, {0, kHuge}}, no_scales, &no_scales, "empty weight");
  refuse(kAffine4, weight, scales, nullptr, "lacks its biases");
  const TensorInfo short_biases{"b", FileDType::f16, {8, 1}};
  refuse(kAffine4, weight, scales, &short_biases, "biases of F16 [8, 1]");
  const TensorInfo other_biases{"b", FileDType::f32, {8, 2}};
  refuse(kAffine4, weight, scales, &other_biases, "biases of F32");
  refuse(kAffine4, weight, {"s", FileDType::u8, {8, 2}}, &scales, "scales of U8");
  refuse({QuantMode::mxfp4, 4, 32}, weight, {"s", FileDType::u8, {8, 4}}, &scales, "expected none");
  refuse({QuantMode::mxfp4, 4, 32}, weight, {"s", FileDType::f16, {8, 4}}, nullptr, "expected U8");
  refuse(kAffine4, {"w", FileDType::u32, {}}, {"s", FileDType::f16, {}}, &scales, "biases");
}

}  // namespace
}  // namespace sluice::checkpoint
