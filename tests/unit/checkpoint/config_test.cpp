#include "checkpoint/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "expect_error.h"
#include "temporary_folder.h"

namespace sluice::checkpoint {
namespace {

Config parse(std::string_view text) {
  return Config(parse_json(text, "config.json"), "config.json");
}

TEST(Config, ReadsAFlatFile) {
  const TemporaryFolder folder;
  folder.write("config.json",
               R"({"model_type": "qwen3_moe", "hidden_size": 2048, "rms_norm_eps": 1e-6, "x": null})");
  const Config config(folder.path());
  EXPECT_EQ(config.model_type(), "qwen3_moe");
  EXPECT_EQ(config.get<int>("hidden_size"), 2048);
  EXPECT_EQ(config.get<double>("rms_norm_eps"), 1e-6);
  EXPECT_EQ(config.get_or<int>("x", 5), 5);
  EXPECT_FALSE(config.has("x"));
  EXPECT_EQ(config.optional<bool>("none"), std::nullopt);
}

TEST(Config, TextConfigComesFirst) {
  const Config config = parse(R"({"model_type": "qwen3_5_moe", "tie_word_embeddings": true, "hidden_size": 1,
                                  "text_config": {"model_type": "qwen3_5_moe_text", "hidden_size": 2048}})");
  EXPECT_EQ(config.model_type(), "qwen3_5_moe");
  EXPECT_EQ(config.get<std::string>("model_type"), "qwen3_5_moe_text");
  EXPECT_EQ(config.get<int>("hidden_size"), 2048);
  EXPECT_TRUE(config.get<bool>("tie_word_embeddings"));
}

TEST(Config, SectionsNameTheirKeys) {
  const Config config = parse(R"({"rope_parameters": {"rope_theta": 1e7, "bad": "x"}, "n": 1})");
  const Config rope = config.section("rope_parameters").value();
  EXPECT_EQ(rope.get<double>("rope_theta"), 1e7);
  EXPECT_FALSE(config.section("none"));
  expect_error(ErrorKind::checkpoint, {"config.json: 'rope_parameters.bad' is \"x\""},
               [&] { rope.get<int>("bad"); });
  expect_error(ErrorKind::checkpoint, {"'rope_parameters.factor' is missing"},
               [&] { rope.get<int>("factor"); });
  expect_error(ErrorKind::checkpoint, {"'n'", "expected an object"}, [&] { config.section("n"); });
}

TEST(Config, KnowsWhatWasNotRead) {
  const Config config =
      parse(R"({"model_type": "m", "a": 1, "b": 2, "nothing": null, "torch_dtype": "bfloat16",
                                  "rope": {"theta": 1, "twist": 2}, "other": {"x": 1}, "empty": {}})");
  config.get<int>("a");
  config.section("rope").value().get<int>("theta");
  config.section("empty");
  EXPECT_EQ(config.unread(), (std::vector<std::string>{"b", "other", "rope.twist"}));
  expect_error(ErrorKind::unsupported, {"config.json", "'b', 'other'", "not supported"},
               [&] { config.refuse_unread({"rope.twist"}); });
  EXPECT_NO_THROW(config.refuse_unread({"rope.twist", "b", "other"}));
}

TEST(Config, UnreadLooksAtTheLanguageModelOnly) {
  const Config config = parse(R"({"vision_config": {"depth": 1}, "text_config": {"a": 1, "b": 2}})");
  config.get<int>("a");
  EXPECT_EQ(config.unread(), (std::vector<std::string>{"b"}));
}

TEST(Config, RefusesWhatIsNoConfiguration) {
  expect_error(ErrorKind::checkpoint, {"config.json", "expected an object"}, [] { parse("[]"); });
  expect_error(ErrorKind::checkpoint, {"'text_config'"}, [] { parse(R"({"text_config": 1})"); });
  expect_error(ErrorKind::checkpoint, {"'model_type'"}, [] { parse("{}").model_type(); });
  expect_error(ErrorKind::input, {"config.json"}, [] { Config(std::filesystem::path("/nonexistent")); });
}

}  // namespace
}  // namespace sluice::checkpoint
