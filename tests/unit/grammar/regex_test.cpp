// Regular expressions compared with std::regex, and numbers with arithmetic.
#include <fmt/core.h>

#include <cmath>
#include <regex>

#include "expect_error.h"
#include "grammar/json/number.h"
#include "grammar/regex/lexer.h"
#include "grammar/regex/pattern.h"
#include "unit/grammar/grammar_fixture.h"

namespace sluice::grammar {
namespace {

class RandomPattern {
 public:
  explicit RandomPattern(unsigned seed) : random_(seed) {}

  std::string make(int depth) {
    switch (random_() % (depth > 0 ? 8 : 3)) {
      case 0:
      case 1:
        return std::string(1, "abc1"[random_() % 4]);
      case 2:
        return pick({"[ab]", "[^a]", ".", "\\d", "\\w", "[a-c1]", "\\D"});
      case 3:
        return "(?:" + make(depth - 1) + "|" + make(depth - 1) + ")";
      case 4:
        return "(" + make(depth - 1) + ")" + pick({"*", "+", "?", "{2}", "{1,3}", "{0,2}", "*?"});
      default:
        return make(depth - 1) + make(depth - 1);
    }
  }
  std::string text() {
    std::string result;
    for (std::size_t length = random_() % 9; result.size() < length;) result += "abc1- "[random_() % 6];
    return result;
  }
  unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }

 private:
  std::string pick(std::initializer_list<const char*> choices) {
    return choices.begin()[random_() % choices.size()];
  }

  std::mt19937 random_;
};

// Random texts match, or contain a match of, the pattern exactly if the standard library agrees.
void expect_as_standard(const std::string& pattern, RandomPattern& random) {
  SCOPED_TRACE("/" + pattern + "/");
  const std::regex oracle(pattern);
  regex::Arena arena;
  regex::Lexer lexer(arena);
  const regex::Pattern parsed = regex::parse_pattern(pattern, {.ecma = true});
  const regex::Id match = regex::match_regex(arena, parsed, regex::TextForm::utf8),
                  search = regex::search_regex(arena, parsed, regex::TextForm::utf8);
  for (int i = 0; i < 40; ++i) {
    const std::string text = random.text();
    EXPECT_EQ(lexer.matches(match, text), std::regex_match(text, oracle)) << text;
    EXPECT_EQ(lexer.matches(search, text), std::regex_search(text, oracle)) << "in " << text;
  }
}

TEST(GrammarRegex, AgreesWithTheStandardLibrary) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    RandomPattern random(seed);
    std::string pattern = random.make(4);
    if (random.below(3) == 0) {
      const std::string assertion = random.below(3) == 0 ? "\\B" : "\\b";
      const std::string beginning = random.below(2) == 0 ? random.make(2) : "";
      pattern =
          "(?:" + beginning + assertion + "|" + random.make(2) + ")" + pattern + assertion + random.make(1);
    }
    if (random.below(4) == 0) pattern = "^" + pattern;
    if (random.below(4) == 0) pattern += "$";
    if (random.below(6) == 0) pattern = "^(?!" + random.make(1) + ")" + pattern;
    expect_as_standard(pattern, random);
  }
}

// Supported repeated assertions: ends in repetitions, and words that must not occur.
TEST(GrammarRegex, RepeatedAssertionsAgreeWithTheStandardLibrary) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    RandomPattern random(seed);
    std::string pattern;
    if (seed % 2 == 0) {
      const char* counts[] = {"*", "+", "{0,2}", "{1,3}"};
      pattern = "^" + random.make(1) + "(?:" + random.make(2) + "(?:" + random.make(1) + "|$))" +
                counts[random.below(4)] + (random.below(2) == 0 ? "$" : random.make(1));
    } else {
      pattern = "^" + random.make(2) + "(?:(?!" + random.make(2) + ")(?!" + random.make(1) + "$).)" +
                (random.below(2) == 0 ? "*$" : "{1,4}$");
    }
    expect_as_standard(pattern, random);
  }
}

TEST(GrammarRegex, CharactersOfUtf8) {
  const auto grammar = make_grammar(GrammarSource::Kind::regex, R"([^a-zä][α-ω]{2}\x{1F600}\u65e5.)");
  EXPECT_TRUE(accepts(grammar, "öαω😀日\u00a0"));
  EXPECT_FALSE(accepts(grammar, "äαω😀日x"));
  EXPECT_FALSE(accepts(grammar, "öαΩ😀日x"));
  EXPECT_FALSE(accepts(grammar, "\xC3αω😀日x"));
  EXPECT_TRUE(accepts(make_grammar(GrammarSource::Kind::regex, "(?i)Stra(?-i:SS)e[[:digit:]]"), "sTRASSE5"));
}

TEST(GrammarRegex, WordBoundaries) {
  const auto agree = [](const char* pattern, std::vector<const char*> yes, std::vector<const char*> no) {
    const auto grammar = schema_grammar(fmt::format(R"({{"type":"string","pattern":"{}"}})", pattern));
    for (const char* text : yes) EXPECT_TRUE(accepts(grammar, text)) << pattern << " " << text;
    for (const char* text : no) EXPECT_FALSE(accepts(grammar, text)) << pattern << " " << text;
  };
  agree("\\\\bcat\\\\b", {R"("cat")", R"("a cat.")", R"("\ncat")", R"("écat")"},
        {R"("cats")", R"("a_cat")", R"("")"});
  agree("^\\\\B.\\\\B$", {R"("-")", R"("é")"}, {R"("a")", R"("--")"});
  const auto whole = make_grammar(GrammarSource::Kind::regex, R"(.*\b(yes|no)\b.*)");
  EXPECT_TRUE(accepts(whole, "I say no, never"));
  EXPECT_FALSE(accepts(whole, "I know nothing"));
}

TEST(GrammarRegex, UnicodeProperties) {
  const auto matches = [](const char* pattern, const char* text) {
    return accepts(make_grammar(GrammarSource::Kind::regex, pattern), text);
  };
  for (const char* letters : {R"(\p{L}+)", R"(\pL+)", R"(\p{Letter}+)", R"([\p{Lu}\p{Ll}\p{Lo}]+)",
                              R"(\P{^L}+)", R"([^\PL]+)", R"(\p{Alphabetic}+)"}) {
    EXPECT_TRUE(matches(letters, "Größeж日")) << letters;
    EXPECT_FALSE(matches(letters, "a1")) << letters;
    EXPECT_FALSE(matches(letters, "a b")) << letters;
  }
  EXPECT_TRUE(matches(R"(\p{digit}\p{Nd}\p{Greek}\p{Script=Cyrillic})", "7٣λж"));
  EXPECT_FALSE(matches(R"(\p{Greek})", "a"));
  EXPECT_TRUE(matches(R"(\P{Greek}\p{^Greek})", "aж"));
  EXPECT_TRUE(matches(R"(\p{Sc}\p{gc=Currency_Symbol}\p{Zs})", "€$ "));
  // The characters before, at and after both ends of the property's ranges, of every length in UTF-8.
  EXPECT_TRUE(matches(R"(\p{L}+)", "ZzÖØöøǺ"));
  for (const char* no : {"[", "{", "×", "÷", "`", "@", "٠", "𐀌"})
    EXPECT_FALSE(matches(R"(\p{L})", no)) << no;
  EXPECT_TRUE(matches(R"(\p{Lu}+)", "ÀÞĀ"));
  for (const char* no : {"ß", "×", "ā"}) EXPECT_FALSE(matches(R"(\p{Lu})", no)) << no;
  EXPECT_TRUE(matches(R"(\p{Lm}\P{L})", "\u02C1\u02C2"));
  EXPECT_TRUE(matches(R"(\P{Nd})", ":"));
  EXPECT_FALSE(matches(R"(\P{Greek})", "ω"));
  expect_error(ErrorKind::input, {"unknown Unicode property", "byte 1"},
               [] { regex::parse_pattern("a\\p{Klingon}", {}); });
  expect_error(ErrorKind::input, {"unfinished Unicode property"}, [] { regex::parse_pattern("\\p{L", {}); });
  expect_error(ErrorKind::input, {"unfinished Unicode property"}, [] { regex::parse_pattern("\\p", {}); });
}

// Simple case folding, which identifies more than two characters if Unicode does.
TEST(GrammarRegex, CaseOfAllLettersIsIgnored) {
  const auto matches = [](const char* pattern, const char* text) {
    return accepts(make_grammar(GrammarSource::Kind::regex, pattern), text);
  };
  EXPECT_TRUE(matches("(?i)über[äöü]Σж", "ÜBERÖςЖ"));
  EXPECT_TRUE(matches("(?i)kelvins", "\u212AELVIN\u017F"));
  EXPECT_TRUE(matches("(?i)ẞⅷⓐ\u01C5", "ßⅧⒶ\u01C4"));
  EXPECT_FALSE(matches("(?i)ß", "ss"));
  EXPECT_FALSE(matches("(?i)i", "ı"));
  EXPECT_FALSE(matches("(?i)[^éσ]", "É"));
  EXPECT_FALSE(matches("(?i)[^éσ]", "ς"));
  EXPECT_TRUE(matches("(?i)[^é]", "e"));
  EXPECT_TRUE(matches("(?i)\\p{Lu}+", "Öö"));
  for (const char* others : {"(?i)\\P{Lu}", "(?i)\\p{^Lu}", "(?i)\\W", "(?i)[^a-z]", "(?i)[[:^alpha:]]"}) {
    EXPECT_FALSE(matches(others, "k")) << others;
    EXPECT_TRUE(matches(others, "-")) << others;
  }
  EXPECT_FALSE(matches("(?i)\\W", "\u212A"));
}

TEST(GrammarRegex, QuantifiersAfterQuotedTextApplyToItsLastCharacter) {
  const auto quoted = make_grammar(GrammarSource::Kind::regex, R"(x\Qa.b\E{0,2})");
  EXPECT_TRUE(accepts(quoted, "xa.bb"));
  EXPECT_TRUE(accepts(quoted, "xa."));
  EXPECT_FALSE(accepts(quoted, "x"));
}

TEST(GrammarRegex, EscapesByNumber) {
  EXPECT_TRUE(accepts(make_grammar(GrammarSource::Kind::regex, R"(\0\07\0101)"), std::string("\0\7\x08"
                                                                                             "1",
                                                                                             4)));
  EXPECT_TRUE(accepts(make_grammar(GrammarSource::Kind::regex, R"([\060-\062]\x{1F600})"), "2😀"));
}

// To ECMAScript, [[:alpha:]] is a set followed by a bracket, which is not what its author meant.
TEST(GrammarRegex, PosixClassesAreForRe2Only) {
  EXPECT_TRUE(accepts(make_grammar(GrammarSource::Kind::regex, "[[:alpha:]]"), "x"));
  expect_error(ErrorKind::unsupported, {"#/pattern", "POSIX", "byte 2"},
               [] { schema_grammar(R"({"type":"string","pattern":"^[[:alpha:]]$"})"); });
  const auto set = schema_grammar(R"({"type":"string","pattern":"^[[:a]$"})");
  EXPECT_TRUE(accepts(set, R"("[")"));
  EXPECT_TRUE(accepts(set, R"(":")"));
  EXPECT_FALSE(accepts(set, R"("b")"));
}

TEST(GrammarRegex, WhatIsWrongIsSaid) {
  const auto parse = [](const char* text) { return [text] { regex::parse_pattern(text, {}); }; };
  expect_error(ErrorKind::input, {"')'", "byte 2"}, parse("(a"));
  expect_error(ErrorKind::input, {"']'"}, parse("[a"));
  expect_error(ErrorKind::input, {"nothing to repeat"}, parse("*a"));
  expect_error(ErrorKind::unsupported, {"reference to a group"}, parse("(a)\\1"));
  expect_error(ErrorKind::unsupported, {"lookbehind"}, parse("(?<=a)b"));
  expect_error(ErrorKind::input, {"maximum is below"}, parse("a{3,2}"));
}

TEST(GrammarNumber, RangesAgreeWithArithmetic) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const auto bound = [&] { return static_cast<int>(random() % 4001) - 2000; };
    int low = bound(), high = bound();
    if (low > high) std::swap(low, high);
    const bool whole = random() % 2 == 0;
    const int scale = whole ? 1 : 100;
    json::NumberRange range{.low = json::Decimal::parse(fmt::format("{}e{}", low, whole ? 0 : -2)),
                            .high = json::Decimal::parse(fmt::format("{}e{}", high, whole ? 0 : -2)),
                            .above_low = random() % 2 == 0,
                            .below_high = random() % 2 == 0,
                            .integers = true,
                            .fractions = !whole};
    regex::Arena arena;
    regex::Lexer lexer(arena);
    const regex::Id regex = json::number_regex(arena, range);
    for (int i = 0; i < 200; ++i) {
      const int value = i < 100 ? bound() : (i % 2 == 0 ? low : high) + i % 7 - 3;
      const bool inside =
          (range.above_low ? value > low : value >= low) && (range.below_high ? value < high : value <= high);
      std::string text = fmt::format("{}{}", value < 0 ? "-" : "", std::abs(value) / scale);
      if (!whole) text += fmt::format(".{:02}", std::abs(value) % scale);
      EXPECT_EQ(lexer.matches(regex, text), inside)
          << text << " in " << (range.above_low ? "(" : "[") << low << ", " << high
          << (range.below_high ? ")" : "]") << " / " << scale;
    }
  }
}

TEST(GrammarNumber, Multiples) {
  struct Case {
    const char* divisor;
    int scale;
  };
  for (const auto& [divisor, scale] :
       {Case{"7", 1}, Case{"0.01", 100}, Case{"2.5", 10}, Case{"12", 1}, Case{"0.75", 100}}) {
    regex::Arena arena;
    regex::Lexer lexer(arena);
    const json::Decimal step = json::Decimal::parse(divisor);
    const regex::Id regex = json::multiple_regex(arena, step);
    const int unit = static_cast<int>(std::lround(std::stod(divisor) * scale));
    for (int value = 0; value < 2000; ++value) {
      std::string text = fmt::format("{}", value / scale);
      if (scale > 1) text += "." + fmt::format("{:0{}}", value % scale, scale == 10 ? 1 : 2);
      EXPECT_EQ(lexer.matches(regex, text), value % unit == 0) << text << " of " << divisor;
      EXPECT_EQ(json::is_multiple(json::Decimal::parse(text), step), value % unit == 0)
          << text << " of " << divisor;
    }
  }
}

}  // namespace
}  // namespace sluice::grammar
