#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "text/byte_level.h"
#include "text/detokenizer.h"
#include "unit/text/random_text.h"

namespace sluice::text {
namespace {

using Ids = std::vector<std::int32_t>;

// The 256 bytes, "ab", "abc" and two added tokens.
Json small_json() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[ByteLevel::instance().character(static_cast<unsigned char>(byte))] = byte;
  vocab["ab"] = 256;
  vocab["abc"] = 257;
  return {{"added_tokens",
           {{{"id", 258}, {"content", "<eos>"}, {"special", true}, {"normalized", false}},
            {{"id", 259}, {"content", "<think>"}, {"special", false}, {"normalized", false}}}},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a b", "ab c"}}}}};
}

Ids bytes_of(std::string_view text) {
  Ids ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

void expect_refused(const Json& json, ErrorKind kind, std::string_view sentence) {
  try {
    const Tokenizer tokenizer(json);
    ADD_FAILURE() << "accepted; expected: " << sentence;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_EQ(std::string_view(error.what()), sentence);
  }
}

TEST(Tokenizer, MergesByRank) {
  const Tokenizer tokenizer(small_json());
  EXPECT_EQ(tokenizer.encode("abc"), Ids({257}));
  EXPECT_EQ(tokenizer.encode("abab"), Ids({256, 256}));
  EXPECT_EQ(tokenizer.encode("bcab"), Ids({'b', 'c', 256}));
  EXPECT_EQ(tokenizer.encode(""), Ids());
}

TEST(Tokenizer, LooksUpPiecesAndIds) {
  const Tokenizer tokenizer(small_json());
  EXPECT_EQ(tokenizer.vocab_size(), 260);
  EXPECT_EQ(tokenizer.id("<eos>"), 258);
  EXPECT_EQ(tokenizer.id("nothing"), std::nullopt);
  EXPECT_EQ(tokenizer.piece(32), "Ġ");
  EXPECT_EQ(tokenizer.bytes(32), " ");
  EXPECT_EQ(tokenizer.piece(260), "");
  EXPECT_EQ(tokenizer.piece(-1), "");
  EXPECT_TRUE(tokenizer.is_special(258));
  EXPECT_FALSE(tokenizer.is_special(259));
  EXPECT_FALSE(tokenizer.is_special(-1));
}

TEST(Tokenizer, SpecialTokensCanBeText) {
  const Tokenizer tokenizer(small_json());
  EXPECT_EQ(tokenizer.encode("<eos><think>"), Ids({258, 259}));
  Ids expected = bytes_of("<eos>");
  expected.push_back(259);
  EXPECT_EQ(tokenizer.encode("<eos><think>", {.special_as_text = true}), expected);
}

TEST(Tokenizer, SkippingSpecialKeepsPlainAddedTokens) {
  const Tokenizer tokenizer(small_json());
  const Ids ids = {258, 'a', 259, 258};
  EXPECT_EQ(tokenizer.decode(ids), "a<think>");
  EXPECT_EQ(tokenizer.decode(ids, false), "<eos>a<think><eos>");
  EXPECT_EQ(tokenizer.decode(Ids{-5, 'a', 1 << 30}), "a");
}

TEST(Tokenizer, InvalidUtf8IsReplacedAsPythonDoes) {
  const Tokenizer tokenizer(small_json());
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(tokenizer.encode("a\xFFz"), bytes_of("a" + replacement + "z"));
  EXPECT_EQ(tokenizer.encode("\xE4\xBD"), bytes_of(replacement));  // truncated: one
  EXPECT_EQ(tokenizer.encode("\xED\xA0\x80"),
            bytes_of(replacement + replacement + replacement));  // a surrogate
  EXPECT_EQ(tokenizer.encode("\xF0\x9F\x98z"), bytes_of(replacement + "z"));
}

TEST(Tokenizer, TemplateAddsTokensOnRequestOnly) {
  Json json = small_json();
  json["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single",
                             {{{"SpecialToken", {{"id", "<eos>"}, {"type_id", 0}}}},
                              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
                              {{"SpecialToken", {{"id", "<think>"}, {"type_id", 0}}}}}},
                            {"special_tokens", {{"<eos>", {{"ids", {258}}}}, {"<think>", {{"ids", {259}}}}}}};
  const Tokenizer tokenizer(json);
  EXPECT_EQ(tokenizer.encode("abc"), Ids({257}));
  EXPECT_EQ(tokenizer.encode("abc", {.add_special_tokens = true}), Ids({258, 257, 259}));
}

TEST(Tokenizer, MissingBytesAreLeftOut) {
  Json json = small_json();
  json["model"]["vocab"].erase("z");
  EXPECT_EQ(Tokenizer(json).encode("azb"), Ids({256}));
}

TEST(Tokenizer, LongWordsTakeLittleTime) {
  const Tokenizer tokenizer(small_json());
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "ab";
  EXPECT_EQ(tokenizer.encode(text), Ids(300'000, 256));
}

// Every space is a token, but the first takes all the others.
TEST(Tokenizer, StrippingTokensTakeLittleTime) {
  Json json = small_json();
  json["added_tokens"].push_back(
      {{"id", 260}, {"content", " "}, {"lstrip", true}, {"rstrip", true}, {"normalized", false}});
  EXPECT_EQ(Tokenizer(json).encode(std::string(500'000, ' ')), Ids({260}));
}

TEST(Tokenizer, ThreadsShareIt) {
  const Tokenizer tokenizer = Tokenizer::parse(read_test_file("qwen35.tokenizer.json"));
  const RandomText random_text;
  std::vector<Ids> expected;
  for (std::uint64_t i = 0; i < 500; ++i) expected.push_back(tokenizer.encode(random_text(i)));
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int& count : wrong)
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < expected.size(); ++i)
        count += tokenizer.encode(random_text(i)) != expected[i];
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(Tokenizer, RoundTrip) {
  const Tokenizer tokenizer = Tokenizer::parse(read_test_file("deepseek.tokenizer.json"));  // no normaliser
  const RandomText random_text;
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    const std::string text = random_text(i);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text), false), text) << "string " << i;
  }
}

TEST(Detokenizer, HoldsBackHalfCharacters) {
  const Tokenizer tokenizer(small_json());
  Detokenizer stream(tokenizer);
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x98), "");
  EXPECT_EQ(stream.push(0x80), "\U0001F600");
  EXPECT_EQ(stream.push(0xE4), "");
  EXPECT_EQ(stream.push('a'), "\uFFFDa");
  EXPECT_EQ(stream.push(0xC3), "");
  EXPECT_EQ(stream.push(258), "");  // special: skipped, the character continues
  EXPECT_EQ(stream.push(0xA9), "é");
  EXPECT_EQ(stream.push(0xC3), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

struct Broken {
  const char* pointer;  // what is replaced
  Json value;           // replacement; discarded: removed
  ErrorKind kind;
  const char* sentence;
};

// Prints the case's name in the list of tests.
void PrintTo(const Broken& broken, std::ostream* out) {
  *out << broken.pointer;
}

class BrokenTokenizer : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenTokenizer, IsRefusedInOneSentence) {
  Json json = small_json();
  const Json::json_pointer pointer(GetParam().pointer);
  if (GetParam().value.is_discarded())
    json.at(pointer.parent_pointer()).erase(pointer.back());
  else
    json[pointer] = GetParam().value;
  expect_refused(json, GetParam().kind, GetParam().sentence);
}

const Json kRemoved(Json::value_t::discarded);

INSTANTIATE_TEST_SUITE_P(
    Files, BrokenTokenizer,
    ::testing::Values(
        Broken{"/model", kRemoved, ErrorKind::checkpoint,
               "tokenizer.json: the required key 'model' is missing"},
        Broken{"/model/merges", kRemoved, ErrorKind::checkpoint,
               "tokenizer.json: model: 'merges' is missing, expected an array"},
        Broken{"/model/merges", 7, ErrorKind::checkpoint,
               "tokenizer.json: model: 'merges' is number, expected an array"},
        Broken{"/model/vocab", Json::array(), ErrorKind::checkpoint,
               "tokenizer.json: model: 'vocab' is array, expected an object"},
        Broken{"/model/vocab/ab", 7, ErrorKind::checkpoint,
               "tokenizer.json: the id 7 is given to both 'ab' and 'ć'"},
        Broken{"/model/vocab/ab", "x", ErrorKind::checkpoint,
               "tokenizer.json: model: the id of 'ab' is string, expected an integer"},
        Broken{"/model/vocab/ab", 4'000'000'000, ErrorKind::checkpoint,
               "tokenizer.json: the token 'ab' has the id 4000000000, ids must be in 0..1048575"},
        Broken{"/model/vocab/ab", -1, ErrorKind::checkpoint,
               "tokenizer.json: the token 'ab' has the id -1, ids must be in 0..1048575"},
        Broken{"/model/vocab/ab", kRemoved, ErrorKind::checkpoint,
               "tokenizer.json: model: merge 0 names 'ab', which is not in the vocabulary"},
        Broken{"/model/merges/1", "x yz", ErrorKind::checkpoint,
               "tokenizer.json: model: merge 1 names 'yz', which is not in the vocabulary"},
        Broken{"/model/merges/1", "abc", ErrorKind::checkpoint,
               R"(tokenizer.json: model: merge 1 is '"abc"', expected "a b" or ["a", "b"])"},
        Broken{"/model/merges/1",
               {"", "ab"},
               ErrorKind::checkpoint,
               R"(tokenizer.json: model: merge 1 is '["","ab"]', expected "a b" or ["a", "b"])"},
        Broken{"/model/type", "Unigram", ErrorKind::unsupported,
               "tokenizer.json: model: the type 'Unigram' is not supported, only BPE is"},
        Broken{"/model/byte_fallback", true, ErrorKind::unsupported,
               "tokenizer.json: model: 'byte_fallback' is not supported, it must be false"},
        Broken{"/model/unk_token", "<unk>", ErrorKind::unsupported,
               "tokenizer.json: model: 'unk_token' is not supported, it must be null"},
        Broken{"/normalizer/type", "Lowercase", ErrorKind::unsupported,
               "tokenizer.json: the normalizer 'Lowercase' is not supported, only NFC is"},
        Broken{"/pre_tokenizer", nullptr, ErrorKind::unsupported,
               "tokenizer.json: pre_tokenizer: there is no ByteLevel in it, and only byte-level vocabularies "
               "are "
               "supported"},
        Broken{
            "/pre_tokenizer/type", "Metaspace", ErrorKind::unsupported,
            "tokenizer.json: pre_tokenizer: 'Metaspace' is not supported, only Sequence, Split, Digits and "
            "ByteLevel are"},
        Broken{"/decoder", nullptr, ErrorKind::unsupported,
               "tokenizer.json: the decoder 'null' is not supported, only ByteLevel is"},
        Broken{"/post_processor",
               {{"type", "BertProcessing"}},
               ErrorKind::unsupported,
               "tokenizer.json: post_processor: 'BertProcessing' is not supported, only ByteLevel, "
               "TemplateProcessing and Sequence are"},
        Broken{"/added_tokens", 1, ErrorKind::checkpoint,
               "tokenizer.json: 'added_tokens' is number, expected an array"},
        Broken{"/added_tokens/0/content", "", ErrorKind::checkpoint,
               "tokenizer.json: added_tokens: a content has 0 bytes, expected 1..1024"},
        Broken{"/added_tokens/0/content", "ab", ErrorKind::checkpoint,
               "tokenizer.json: added_tokens: 'ab' has the id 258, but 256 in the vocabulary"},
        Broken{"/added_tokens/1/id", 258, ErrorKind::checkpoint,
               "tokenizer.json: the id 258 is given to both '<eos>' and '<think>'"},
        Broken{"/added_tokens/1", small_json()["added_tokens"][0], ErrorKind::checkpoint,
               "tokenizer.json: the added token '<eos>' is listed twice"}));

}  // namespace
}  // namespace sluice::text
