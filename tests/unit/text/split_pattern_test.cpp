#include "text/split_pattern.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "unit/text/random_text.h"

namespace sluice::text {
namespace {

std::vector<std::string> matches_of(const SplitPattern& pattern, std::string_view text) {
  std::vector<Match> matches;
  pattern.find_all(text, matches);
  std::vector<std::string> found;
  for (const Match& match : matches) found.emplace_back(text.substr(match.begin, match.end - match.begin));
  return found;
}

constexpr const char* kKnownRegexes[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"(\p{N}{1,3})",
    R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
};

// Characters with the same classes in every Unicode version since 13, in scripts whose classes interleave
// most.
std::string settled_text(std::uint64_t seed) {
  constexpr std::u32string_view kCharacters =
      U" \t\n\r\u00a0\u3000ab'sS\u017flLrevET019\u0664\u00bd.,!?-_$+<>"
      U"\u00e9\u0301\u0323\u0e31\u0e2a\u094d\u0928"
      U"\u4e00\u9fa5\u9fa6\u3042\u30ab\u3099\uff0c\uac00\U0001f600\u200d\ufe0f\U0001d400\u0001\u200b\u2028";
  Random random(seed);
  std::string text;
  for (std::uint64_t length = 1 + random.below(24); length > 0; --length)
    append_utf8(text, kCharacters[random.below(kCharacters.size())]);
  return text;
}

TEST(SplitPattern, ScannersAgreeWithTheirRegexes) {
  for (const char* regex : kKnownRegexes) {
    const auto scanner = make_known_pattern(regex);
    ASSERT_NE(scanner, nullptr) << regex;
    const auto reference = make_regex_pattern(regex);
    for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
      const std::string text = settled_text(seed);
      ASSERT_EQ(matches_of(*scanner, text), matches_of(*reference, text)) << regex << ", seed " << seed;
    }
  }
}

TEST(SplitPattern, UnknownRegexesAreNotGuessed) {
  EXPECT_EQ(make_known_pattern(R"(\p{N}{1,4})"), nullptr);
  EXPECT_EQ(make_known_pattern(R"(\x{zzzz})"), nullptr);
  EXPECT_EQ(make_known_pattern(""), nullptr);
}

TEST(SplitPattern, EmptyMatchesEnd) {
  const auto pattern = make_regex_pattern("x*");
  EXPECT_EQ(matches_of(*pattern, "éxxé"), (std::vector<std::string>{"", "xx", ""}));
}

TEST(SplitPattern, CatastrophicRegexFails) {
  const auto pattern = make_regex_pattern("(a+|a+a+)+$");
  std::vector<Match> matches;
  try {
    pattern->find_all(std::string(200, 'a') + "b", matches);
    FAIL() << "matched";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(std::string_view(error.what()).find("match limit exceeded"), std::string_view::npos)
        << error.what();
  }
}

TEST(SplitPattern, InvalidRegexFails) {
  try {
    make_regex_pattern("a(b");
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::checkpoint);
    EXPECT_STREQ(error.what(),
                 "the pre-tokenizer regex 'a(b' is invalid at byte 3: missing closing parenthesis");
  }
}

}  // namespace
}  // namespace sluice::text
