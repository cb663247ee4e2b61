// Compared with the tokenizers package, on texts in all scripts: see tools/golden/tokenizer.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "unit/text/random_text.h"

namespace sluice::text {
namespace {

class TokenizerGolden : public ::testing::TestWithParam<const char*> {
 protected:
  std::string name_ = GetParam();
  Tokenizer tokenizer_ = Tokenizer::parse(read_test_file(name_ + ".tokenizer.json"));
  Json golden_ = parse_json(read_test_file(name_ + ".golden.json"), "golden");
  RandomText random_text_;
};

TEST_P(TokenizerGolden, Examples) {
  EXPECT_EQ(tokenizer_.vocab_size(), golden_.at("vocab_size").get<std::int32_t>());
  EXPECT_EQ(tokenizer_.encode("a b"), golden_.at("plain").get<std::vector<std::int32_t>>());
  for (std::size_t i = 0; i < golden_.at("examples").size(); ++i) {
    const Json& example = golden_.at("examples")[i];
    const auto text = example.at("text").get<std::string>();
    ASSERT_EQ(random_text_(i), text) << "the generators differ at string " << i;
    const auto ids = tokenizer_.encode(text, {.add_special_tokens = true});
    EXPECT_EQ(ids, example.at("ids").get<std::vector<std::int32_t>>()) << "string " << i << ": " << text;
    EXPECT_EQ(tokenizer_.decode(ids), example.at("decoded").get<std::string>())
        << "string " << i << ": " << text;
  }
}

TEST_P(TokenizerGolden, HundredThousandStrings) {
  const Json& encode = golden_.at("encode");
  ASSERT_GE(encode.size() * random_text_.batch, 100'000u);
  for (std::size_t batch = 0; batch < encode.size(); ++batch) {
    Fnv1a ids_hash, text_hash;
    for (std::size_t i = 0; i < random_text_.batch; ++i) {
      const auto ids =
          tokenizer_.encode(random_text_(batch * random_text_.batch + i), {.add_special_tokens = true});
      ids_hash.add(static_cast<std::uint32_t>(ids.size()));
      for (const std::int32_t id : ids) ids_hash.add(static_cast<std::uint32_t>(id));
      if (i > 0) text_hash.add(std::string_view("\0", 1));
      text_hash.add(tokenizer_.decode(ids, false));
    }
    ASSERT_EQ(ids_hash.hex(), encode[batch].get<std::string>())
        << "tools/golden/tokenizer.py --show " << name_ << " " << batch;
    ASSERT_EQ(text_hash.hex(), golden_.at("decode")[batch].get<std::string>())
        << name_ << ", batch " << batch;
  }
}

// Random ids make invalid UTF-8 of all kinds.
TEST_P(TokenizerGolden, DecodesRandomIds) {
  Fnv1a hash;
  for (std::uint64_t i = 0; i < random_text_.id_lists; ++i) {
    const auto ids = RandomText::ids(i, tokenizer_.vocab_size());
    const std::string text = tokenizer_.decode(ids);
    if (i > 0) hash.add(std::string_view("\0", 1));
    hash.add(text);
    Detokenizer stream(tokenizer_);
    std::string streamed;
    for (const std::int32_t id : ids) {
      const std::string part = stream.push(id);
      ASSERT_EQ(to_valid_utf8(part), part) << "half a character was emitted, id list " << i;
      streamed += part;
    }
    ASSERT_EQ(streamed + stream.finish(), text) << "id list " << i;
  }
  EXPECT_EQ(hash.hex(), golden_.at("decode_random").get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TokenizerGolden,
                         ::testing::Values("qwen2", "qwen35", "deepseek", "gpt2", "digits", "flags",
                                           "behaviors"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::text
