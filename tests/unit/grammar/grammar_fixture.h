// Vocabularies and helpers for the tests of grammars.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sluice/grammar.h"

namespace sluice {

struct TestVocabulary {
  std::vector<std::string> bytes;
  std::shared_ptr<const GrammarVocabulary> shared;
  static constexpr std::int32_t kStop = 0;
};

// All bytes, pieces of JSON, words with blanks, partial characters, long runs and a duplicate token.
inline const TestVocabulary& test_vocabulary() {
  static const TestVocabulary vocabulary = [] {
    TestVocabulary result;
    result.bytes.emplace_back();  // the stop token
    for (int byte = 0; byte < 256; ++byte) result.bytes.emplace_back(1, static_cast<char>(byte));
    for (const char* piece : {"{\"",
                              "\":",
                              "\": ",
                              "\": \"",
                              "\",",
                              "\", \"",
                              "\"}",
                              "\"]",
                              "},",
                              "}, {",
                              "]}",
                              "[\"",
                              "[[",
                              "{}",
                              "[]",
                              "null",
                              "true",
                              "false",
                              "\\n",
                              "\\u",
                              "\\u00",
                              "\\\"",
                              "00",
                              "12",
                              "123",
                              "0.5",
                              ".5",
                              "e-",
                              "name",
                              " name",
                              "value",
                              "al",
                              "ab",
                              "abc",
                              "abcabcabc",
                              "äö",
                              "日本",
                              "日本語",
                              " \n",
                              "\n  ",
                              "    ",
                              "----",
                              "{\"name\": \"",
                              "😀",
                              "x\"y",
                              "a\",\"b",
                              "true,",
                              "1,",
                              "1, 2",
                              "<think>",
                              "</think>",
                              "    \"",
                              "a.b@c.de",
                              "2024-",
                              "-01",
                              "T00:",
                              "http://"})
      result.bytes.emplace_back(piece);
    result.bytes.emplace_back("\xE6\x97");   // two of three bytes
    result.bytes.emplace_back("\xA5 ");      // the third, and a blank
    result.bytes.emplace_back("a\xF0\x9F");  // half an emoji
    result.bytes.emplace_back("abc");        // duplicate
    result.bytes.emplace_back();             // an id without a token
    result.bytes.emplace_back(std::string(70, 'a'));
    result.bytes.emplace_back(std::string(40, ' '));
    std::mt19937 random(7);
    const std::string letters = "aab01 \",:{}[]\\n.-e";
    for (int i = 0; i < 300; ++i) {
      std::string token;
      for (std::size_t length = 2 + random() % 6; token.size() < length;)
        token += letters[random() % letters.size()];
      result.bytes.push_back(token);
    }
    const std::int32_t stop[] = {TestVocabulary::kStop};
    result.shared = std::make_shared<GrammarVocabulary>(result.bytes, stop);
    return result;
  }();
  return vocabulary;
}

inline std::shared_ptr<const Grammar> make_grammar(GrammarSource::Kind kind, std::string text,
                                                   JsonWhitespace whitespace = JsonWhitespace::readable) {
  return std::make_shared<const Grammar>(
      GrammarSource{.kind = kind, .text = std::move(text), .choices = {}, .whitespace = whitespace},
      test_vocabulary().shared);
}
inline std::shared_ptr<const Grammar> schema_grammar(std::string text,
                                                     JsonWhitespace whitespace = JsonWhitespace::readable) {
  return make_grammar(GrammarSource::Kind::json_schema, std::move(text), whitespace);
}

inline bool accepts(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  Matcher matcher(grammar);
  return matcher.accept_text(text) == text.size() && matcher.can_stop();
}

}  // namespace sluice
