// Engines and sessions: what they reject, and that a failure loses nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "expect_error.h"
#include "sluice/perplexity.h"
#include "sluice/random_model.h"
#include "sluice/session.h"
#include "source_dir.h"
#include "temporary_folder.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = test_data() + "/models";
const fs::path kStory = source_dir() + "/models/delta-story";

std::shared_ptr<Engine> tiny() {
  return Engine::load(kModels / "qwen3_5_moe", {.backend = "cpu", .threads = 1});
}

TEST(Session, RefusesTokensItCannotTake) {
  const auto engine = tiny();
  const auto session = engine->new_session(8);
  const std::vector<std::int32_t> beyond{1, static_cast<std::int32_t>(engine->summary().vocab)};
  expect_error(ErrorKind::input, {"outside the vocabulary"}, [&] { session->extend(beyond); });
  const std::vector<std::int32_t> many(9, 1);
  expect_error(ErrorKind::input, {"9 tokens", "8"}, [&] { session->extend(many); });
  EXPECT_EQ(session->length(), 0);
  session->extend(std::span(many).first(8));
  EXPECT_EQ(session->length(), 8);
  expect_error(ErrorKind::input, {"do not fit"}, [&] { session->extend(std::span(many).first(1)); });
}

TEST(Session, InterleavedSessionsDoNotTouchEachOther) {
  const auto engine = tiny();
  const std::vector<std::int32_t> a{1, 2, 3, 4, 5};
  const std::vector<std::int32_t> b{9, 8, 7, 6, 5};
  const auto alone = engine->new_session(8);
  alone->extend(a);
  const auto first = engine->new_session(8);
  const auto second = engine->new_session(8);
  for (std::size_t i = 0; i < a.size(); ++i) {
    first->extend(std::span(a).subspan(i, 1));
    second->extend(std::span(b).subspan(i, 1));
  }
  // Within one chunk, one call and five have the same arithmetic.
  EXPECT_TRUE(std::ranges::equal(alone->logits(), first->logits()));
}

TEST(Session, RewindRefusesAnotherPast) {
  const auto engine = tiny();
  const auto session = engine->new_session(16);
  session->extend(std::vector<std::int32_t>{1, 2, 3});
  const Snapshot mark = session->mark();
  session->reset();
  session->extend(std::vector<std::int32_t>{1, 2, 4, 5});
  expect_error(ErrorKind::input, {"no longer begins"}, [&] { session->rewind(mark); });
  expect_error(ErrorKind::input, {"mark"}, [&] { session->restore(mark); });
  EXPECT_EQ(session->length(), 4);
}

TEST(Session, SizeIsKnownBeforehand) {
  const auto engine = tiny();
  const auto session = engine->new_session(64);
  EXPECT_LT(session->bytes(), engine->session_bytes(64));
  session->extend(std::vector<std::int32_t>(64, 3));
  EXPECT_EQ(session->bytes(), engine->session_bytes(64));
  expect_error(ErrorKind::input, {"context"},
               [&] { engine->new_session(engine->summary().max_positions + 1); });
}

TEST(Engine, BundledModelTellsAStory) {
  const auto engine = Engine::load(kStory, {.backend = "cpu", .threads = 2});
  const auto session = engine->new_session(128);
  GenerateOptions options;
  options.max_tokens = 40;
  std::string streamed;
  const GenerateResult result =
      generate(*session, engine->encode("Once upon a time"), options, [&](const auto& token) {
        streamed += token.text;
        return true;
      });
  EXPECT_EQ(streamed, result.text);
  EXPECT_GE(result.ids.size(), 20u);
  EXPECT_EQ(engine->decode(result.ids), result.text);
  const std::string chat = engine->render_chat(R"([{"role":"user","content":"Tell me a story."}])");
  EXPECT_NE(chat.find("Tell me a story."), std::string::npos);
  EXPECT_FALSE(engine->stop_ids().empty());
}

TEST(Engine, StopsAtTextsAcrossTokens) {
  const auto engine = Engine::load(kStory, {.backend = "cpu", .threads = 2});
  GenerateOptions options;
  options.max_tokens = 40;
  const auto session = engine->new_session(128);
  const auto prompt = engine->encode("Once upon a time");
  const std::string text = generate(*session, prompt, options).text;
  const std::string stop = text.substr(text.size() / 2, 7);
  options.stop = {stop};
  session->reset();
  const GenerateResult cut = generate(*session, prompt, options);
  EXPECT_EQ(cut.text, text.substr(0, text.find(stop)));
  EXPECT_EQ(cut.reason, FinishReason::stop);
}

TEST(Engine, RandomModelsLoadAsTheyWereWritten) {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "model";
  write_random_model("qwen3-30b-a3b:layers=1,experts=8,vocab=128", 4, out);
  const auto engine = Engine::load(out, {.backend = "cpu", .threads = 2});
  EXPECT_EQ(engine->summary().layers, 1);
  const auto session = engine->new_session(4);
  session->extend(std::vector<std::int32_t>{1, 2, 3});
  EXPECT_EQ(session->logits().size(), 128u);
  expect_error(ErrorKind::input, {"exists"}, [&] { write_random_model("qwen3-30b-a3b", 4, out); });
  expect_error(ErrorKind::input, {"geometry", "known are"},
               [&] { write_random_model("nothing", 4, folder.path() / "x"); });
}

TEST(Engine, RandomModelsSayHowFarTheyAreAndCanBeEnded) {
  const auto make = [](const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    return Engine::random("qwen3-30b-a3b:layers=1,experts=8,vocab=128", 4,
                          {.backend = "cpu", .threads = 1, .progress = progress}, 0);
  };
  std::uint64_t last = 0;
  std::uint64_t whole = 0;
  make([&](std::uint64_t done, std::uint64_t all) {
    EXPECT_LT(last, done);
    last = done;
    whole = all;
  });
  EXPECT_GT(last, 0u);
  EXPECT_EQ(last, whole);
  EXPECT_THROW(make([](std::uint64_t, std::uint64_t) { throw std::length_error("enough"); }),
               std::length_error);
}

// A copy of a fixture with one file changed.
class BrokenCheckpoint : public ::testing::Test {
 protected:
  BrokenCheckpoint() { fs::copy(kModels / "qwen3_5_moe", model_); }

  std::string read(const std::string& name) {
    std::ifstream file(model_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(model_ / name, std::ios::binary) << text;
  }
  void replace(const std::string& from, const std::string& to) {
    std::string config = read("config.json");
    ASSERT_NE(config.find(from), std::string::npos) << from;
    write("config.json", config.replace(config.find(from), from.size(), to));
  }
  void expect(ErrorKind kind, std::initializer_list<std::string_view> parts) {
    expect_error(kind, parts, [&] { Engine::load(model_, {.backend = "cpu", .threads = 1}); });
  }

  TemporaryFolder folder_;
  fs::path model_ = folder_.path() / "model";
};

TEST_F(BrokenCheckpoint, TruncatedWeights) {
  const std::string weights = read("model.safetensors");
  write("model.safetensors", weights.substr(0, weights.size() - 100));
  expect(ErrorKind::checkpoint, {"model.safetensors"});
}

TEST_F(BrokenCheckpoint, NoWeights) {
  fs::remove(model_ / "model.safetensors");
  expect(ErrorKind::checkpoint, {"model"});
}

TEST_F(BrokenCheckpoint, ShapesThatContradictTheConfig) {
  replace("\"hidden_size\": ", "\"hidden_size\": 1");
  expect(ErrorKind::checkpoint, {"embed_tokens", "shape", "config.json"});
}

TEST_F(BrokenCheckpoint, UnknownModelType) {
  replace("\"model_type\": \"qwen3_5_moe", "\"model_type\": \"other");
  expect(ErrorKind::unsupported, {"model_type", "known are"});
}

TEST_F(BrokenCheckpoint, UnknownFieldThatMayChangeTheResult) {
  replace("{", "{\"attention_sink_size\": 4,");
  expect(ErrorKind::unsupported, {"attention_sink_size"});
}

TEST_F(BrokenCheckpoint, ValuesThatAreNotImplemented) {
  replace("\"attention_bias\": false", "\"attention_bias\": true");
  expect(ErrorKind::unsupported, {"attention_bias"});
}

TEST_F(BrokenCheckpoint, DeltaHeadsOfAWidthThatTheOpDoesNotTake) {
  replace("\"linear_key_head_dim\": 32", "\"linear_key_head_dim\": 16");
  expect(ErrorKind::unsupported, {"linear_key_head_dim", "16", "multiples of 32"});
}

TEST_F(BrokenCheckpoint, NoConfig) {
  fs::remove(model_ / "config.json");
  expect(ErrorKind::input, {"config.json"});
}

TEST_F(BrokenCheckpoint, TokenizerWithoutMerges) {
  write("tokenizer.json",
        R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
                             "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0}}})");
  expect(ErrorKind::checkpoint, {"merges"});
}

}  // namespace
}  // namespace sluice
