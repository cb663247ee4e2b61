#include "sluice/convert.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>

#include "temporary_folder.h"
#include "tiny_checkpoint.h"

namespace sluice {
namespace {

ConvertOptions options_of(const Json& run) {
  ConvertOptions options;
  options.quantize = run.value("quantize", true);
  options.bits = run.value("bits", options.bits);
  options.group_size = run.value("group_size", options.group_size);
  options.mixed = run.value("mixed", "");
  options.dtype = run.value("dtype", "");
  options.threads = 2;
  return options;
}

std::vector<std::string> sorted_tensors(const Json& expect) {
  std::vector<std::string> lines = expect["tensors"];
  std::sort(lines.begin(), lines.end());
  return lines;
}

class ConvertGolden : public testing::TestWithParam<const char*> {};

TEST_P(ConvertGolden, EqualsMlxLm) {
  const TinyCheckpoint checkpoint(GetParam());
  const TemporaryFolder folder;
  const auto in = checkpoint.write(folder.path() / "in");
  int count = 0;
  for (const Json& run : checkpoint.golden["runs"]) {
    const auto out = folder.path() / std::to_string(count++);
    convert_checkpoint(in, out, options_of(run));
    Json expected = run["expect"]["config"];
    SCOPED_TRACE(run.dump().substr(0, 60));
    EXPECT_EQ(describe(out), sorted_tensors(run["expect"]));
    // mlx-lm leaves the FP8 block size in the config of weights that are BF16 now.
    if (!expected.contains("quantization")) expected.erase("quantization_config");
    EXPECT_EQ(read_json_file(out / "config.json"), expected);
  }
  EXPECT_GT(count, 1);
}

INSTANTIATE_TEST_SUITE_P(Families, ConvertGolden,
                         testing::Values("qwen3_5_moe", "qwen3_5", "qwen3_next", "qwen3_moe",
                                         "deepseek_v3_fp8", "deepseek_v3"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Convert, ShardsAndThreadsDoNotChangeTensors) {
  const TinyCheckpoint checkpoint("qwen3_next");
  const TemporaryFolder folder;
  ConvertOptions options;
  options.max_shard_bytes = 20000;
  for (const int threads : {1, 3}) {
    options.threads = threads;
    const auto in = checkpoint.write(folder.path() / fmt::format("in{}", threads), 3);
    const auto out = folder.path() / fmt::format("out{}", threads);
    const ConvertSummary summary = convert_checkpoint(in, out, options);
    EXPECT_EQ(describe(out), sorted_tensors(checkpoint.golden["runs"][0]["expect"]));
    EXPECT_GT(summary.shards, 2U);
    for (uint64_t i = 1; i <= summary.shards; ++i) {
      const auto file = out / fmt::format("model-{:05}-of-{:05}.safetensors", i, summary.shards);
      // A header takes some thousand bytes; the embedding's words are the largest tensor.
      EXPECT_LT(std::filesystem::file_size(file), options.max_shard_bytes + 4000);
    }
    const Json index = read_json_file(out / "model.safetensors.index.json");
    EXPECT_EQ(index["weight_map"].size(), summary.tensors);
    EXPECT_EQ(index["metadata"]["total_size"], summary.bytes_out);
  }
}

// The output of --no-quantize is an MLX checkpoint: norms must not be shifted again, nothing split twice.
TEST(Convert, QuantizesAnMlxCheckpointTheSame) {
  for (const char* name : {"qwen3_5_moe", "qwen3_next", "deepseek_v3_fp8"}) {
    const TinyCheckpoint checkpoint(name);
    const TemporaryFolder folder;
    ConvertOptions options;
    options.quantize = false;
    convert_checkpoint(checkpoint.write(folder.path() / "in"), folder.path() / "dense", options);
    options.quantize = true;
    convert_checkpoint(folder.path() / "dense", folder.path() / "out", options);
    EXPECT_EQ(describe(folder.path() / "out"), sorted_tensors(checkpoint.golden["runs"][0]["expect"]))
        << name;
  }
}

TEST(Convert, NamesTheWrapperOfATextOnlyExport) {
  TinyCheckpoint checkpoint("qwen3_5");
  checkpoint.config = checkpoint.config["text_config"];
  const TemporaryFolder folder;
  convert_checkpoint(checkpoint.write(folder.path() / "in"), folder.path() / "out",
                     options_of(checkpoint.golden["runs"][0]));
  EXPECT_EQ(read_json_file(folder.path() / "out/config.json")["model_type"], "qwen3_5");
}

TEST(Convert, TakesEitherNameOfTheExpertCount) {
  TinyCheckpoint checkpoint("qwen3_moe");
  checkpoint.config["num_local_experts"] = checkpoint.config["num_experts"];
  checkpoint.config.erase("num_experts");
  const TemporaryFolder folder;
  convert_checkpoint(checkpoint.write(folder.path() / "in"), folder.path() / "out",
                     options_of(checkpoint.golden["runs"][0]));
  EXPECT_EQ(describe(folder.path() / "out"), sorted_tensors(checkpoint.golden["runs"][0]["expect"]));
  EXPECT_EQ(read_json_file(folder.path() / "out/config.json")["num_experts"], 2);
}

// transformers 5 saves the same settings under other keys; mlx-lm reads the old ones.
TEST(Convert, WritesTheKeysThatMlxLmReads) {
  for (const char* name : {"qwen3_next", "qwen3_moe", "deepseek_v3"}) {
    TinyCheckpoint checkpoint(name);
    Json& config = checkpoint.config;
    const Json old = config;
    config["rope_parameters"] = {{"rope_type", "default"}};
    for (const char* key : {"rope_theta", "partial_rotary_factor"}) {
      if (old.contains(key)) config["rope_parameters"][key] = old[key];
      config.erase(key);
    }
    if (const auto interval = config.find("full_attention_interval"); interval != config.end()) {
      const int distance = *interval;
      for (int layer = 1; layer <= config["num_hidden_layers"]; ++layer)
        config["layer_types"].push_back(layer % distance == 0 ? "full_attention" : "linear_attention");
      config.erase("full_attention_interval");
    }
    const TemporaryFolder folder;
    convert_checkpoint(checkpoint.write(folder.path() / "in"), folder.path() / "out",
                       options_of(checkpoint.golden["runs"][0]));
    const Json written = read_json_file(folder.path() / "out/config.json");
    for (const auto& [key, value] : checkpoint.golden["runs"][0]["expect"]["config"].items())
      EXPECT_EQ(written.value(key, Json()), value) << name << ": " << key;
    EXPECT_TRUE(written.value("rope_scaling", Json()).is_null()) << name;
  }
}

TEST(Convert, WritesYarnAsMlxLmReadsIt) {
  TinyCheckpoint checkpoint("deepseek_v3");
  const Json yarn{{"factor", 16.0}, {"original_max_position_embeddings", 256}, {"mscale", 1.0}};
  checkpoint.config["rope_parameters"] = yarn;
  checkpoint.config["rope_parameters"].update({{"rope_type", "yarn"}, {"rope_theta", 5000.0}});
  checkpoint.config.erase("rope_theta");
  const TemporaryFolder folder;
  convert_checkpoint(checkpoint.write(folder.path() / "in"), folder.path() / "out", {});
  const Json written = read_json_file(folder.path() / "out/config.json");
  EXPECT_EQ(written["rope_theta"], 5000.0);
  EXPECT_EQ(written["rope_scaling"]["type"], "yarn");
  for (const auto& [key, value] : yarn.items()) EXPECT_EQ(written["rope_scaling"][key], value) << key;
}

TEST(Convert, CopiesWhatBelongsToText) {
  const TinyCheckpoint checkpoint("deepseek_v3");
  const TemporaryFolder folder;
  const auto in = checkpoint.write(folder.path() / "in");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "modeling.py",
                           "generation_config.json", "README.md"})
    folder.write(std::string("in/") + name, R"({"eos_token_id": 7})");
  const auto out = folder.path() / "out";
  convert_checkpoint(in, out, {});
  EXPECT_EQ(read_all(out / "tokenizer.json"), read_all(in / "tokenizer.json"));
  for (const char* name : {"tokenizer_config.json", "chat_template.jinja", "generation_config.json"})
    EXPECT_TRUE(std::filesystem::exists(out / name)) << name;
  for (const char* name : {"modeling.py", "README.md"})
    EXPECT_FALSE(std::filesystem::exists(out / name)) << name;
  EXPECT_EQ(read_json_file(out / "config.json")["eos_token_id"], 7);
}

TEST(Convert, ReportsProgress) {
  const TinyCheckpoint checkpoint("deepseek_v3");
  const TemporaryFolder folder;
  uint64_t last = 0;
  size_t calls = 0;
  const auto summary = convert_checkpoint(checkpoint.write(folder.path() / "in"), folder.path() / "out", {},
                                          [&](const ConvertProgress& progress) {
                                            EXPECT_GE(progress.parameters_done, last);
                                            EXPECT_LT(progress.parameters_done, progress.parameters);
                                            EXPECT_FALSE(progress.tensor.empty());
                                            last = progress.parameters_done;
                                            ++calls;
                                          });
  EXPECT_GT(calls, 20U);
  EXPECT_GT(summary.parameters, last);
}

}  // namespace
}  // namespace sluice
