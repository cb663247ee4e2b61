#include <fmt/core.h>

#include <thread>

#include "expect_error.h"
#include "unit/grammar/grammar_fixture.h"

namespace sluice {
namespace {

TEST(GrammarEbnf, RulesCallsAndRepetitions) {
  const auto grammar = make_grammar(GrammarSource::Kind::ebnf, R"ebnf(
    # sums of numbers
    root  ::= sum ";"{1,2}
    sum   ::= term (("+" | "-") term)*
    term  ::= [0-9]+ | "(" sum ")" | 'x\u00e9' | #x3B1)ebnf");
  for (const char* text : {"1;", "1+2-(3+4);;", "xé+α;"}) EXPECT_TRUE(accepts(grammar, text)) << text;
  for (const char* text : {"", "1", "1+;", "(1;", "1;;;", "x;"}) EXPECT_FALSE(accepts(grammar, text)) << text;
}

TEST(GrammarEbnf, WhatIsWrongIsSaid) {
  const auto compile = [](const char* text) {
    return [text] { make_grammar(GrammarSource::Kind::ebnf, text); };
  };
  expect_error(ErrorKind::input, {"'root'"}, compile("a ::= \"x\""));
  expect_error(ErrorKind::input, {"line 2", "'b'"}, compile("root ::= \"x\"\n  b"));
  expect_error(ErrorKind::unsupported, {"'root'", "left recursion"}, compile("root ::= root \"x\" | \"y\""));
  expect_error(ErrorKind::unsupported, {"left recursion"},
               compile("root ::= a\nb ::= \"\"\na ::= b root \"x\" | \"y\""));
  expect_error(ErrorKind::input, {"defined twice"}, compile("root ::= \"x\"\nroot ::= \"y\""));
  expect_error(ErrorKind::input, {"without end"}, compile("root ::= \"x"));
  expect_error(ErrorKind::input, {"no text"}, compile("root ::= \"x\" root"));
}

// Inputs that could cause quadratic time or deep recursion.
TEST(GrammarEbnf, HostileGrammarsEndWithinTheirLimits) {
  const GrammarLimits limits;
  const auto follow = [&](const std::string& text, std::string_view answer) {
    const GrammarSource source{.kind = GrammarSource::Kind::ebnf, .text = text, .choices = {}};
    Matcher matcher(std::make_shared<const Grammar>(source, test_vocabulary().shared, limits));
    std::vector<std::uint32_t> bits(matcher.mask_words());
    matcher.mask(bits);
    return matcher.accept_text(answer) == answer.size() && matcher.can_stop();
  };
  const auto repeated = [](std::string_view text, int count) {
    std::string result;
    for (int i = 0; i < count; ++i) result += text;
    return result;
  };
  // A chain of rules that may all be empty, each of which is known to be so only after the previous one.
  std::string chain = "r0 ::= \"a\"?\n";
  for (int i = 1; i < 50'000; ++i) chain += fmt::format("r{} ::= r{}\n", i, i - 1);
  EXPECT_TRUE(follow(chain + "root ::= r49999 \"b\"", "ab"));
  // Many positions at once.
  EXPECT_TRUE(follow("root ::= " + repeated("x? ", 50'000) + "\nx ::= \"a\" y\ny ::= \"b\"", "abab"));
  // A choice of many calls, none of which ends before the others.
  EXPECT_TRUE(follow("root ::= x" + repeated(" | x", 50'000) + "\nx ::= y\ny ::= \"a\"", "a"));
  expect_error(ErrorKind::resource, {"edges"}, [&] {
    follow("root ::= (x" + repeated("|x", 50'000) + "){10000}\nx ::= \"a\" y\ny ::= \"b\"", "ab");
  });
  for (const char* item : {"x", "\"a\"", "(x)"})
    expect_error(ErrorKind::input, {"too many repetitions"}, [&] {
      follow(std::string("root ::= ") + item + repeated("{2}", 100'000) + "\nx ::= \"a\"", "");
    });
  expect_error(ErrorKind::input, {"nested groups"},
               [&] { follow("root ::= " + repeated("(", 100'000), ""); });
  // Five megabytes, and more than the limit.
  EXPECT_TRUE(follow("root ::= \"a\"\n# " + std::string(std::size_t{10} << 19, 'x'), "a"));
  expect_error(ErrorKind::resource, {"bytes"},
               [&] { follow(std::string((std::size_t{10} << 20) + 1, ' '), ""); });
}

// They either work or report the limit that they exceed, within the time limit.
TEST(GrammarRegex, HostileExpressionsEndWithinTheirLimits) {
  GrammarLimits limits;
  limits.compile_time = std::chrono::milliseconds(2'000);
  limits.step_time = std::chrono::milliseconds(500);
  std::string nested = "a";
  for (int i = 0; i < 100; ++i) nested = "(" + nested + "|b?)*";
  std::string ends = "a", boundaries = "a";
  for (int i = 0; i < 90; ++i) {
    ends = "(" + ends + "|$)*";
    boundaries = "(" + boundaries + "\\b|c)?b";
  }
  const std::string texts[] = {
      ends,
      boundaries,
      "(a*)*b",
      "(a|aa)+$",
      "((((a{0,50}){0,50}){0,50}){0,50}){0,50}b",
      "(x+x+)+y",
      "(.*a.{40})|(.*b.{41})|(.*c.{39})",
      "(a?){5000}a{5000}",
      nested,
      std::string(5'000, '(') + "a" + std::string(5'000, ')'),
  };
  for (const std::string& text : texts) {
    const GrammarSource source{.kind = GrammarSource::Kind::regex, .text = text, .choices = {}};
    try {
      Matcher matcher(std::make_shared<const Grammar>(source, test_vocabulary().shared, limits));
      std::vector<std::uint32_t> bits(matcher.mask_words());
      for (int i = 0; i < 60; ++i) {
        matcher.mask(bits);
        if (matcher.accept_text("a") == 0) break;
      }
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
    }
  }
}

TEST(GrammarMatcher, RollbackAndCopies) {
  Matcher matcher(make_grammar(GrammarSource::Kind::regex, "a(bc|d)e"));
  EXPECT_EQ(matcher.accept_text("a"), 1u);
  Matcher copy(matcher);
  EXPECT_EQ(copy.accept_text("dx"), 1u);
  EXPECT_EQ(copy.forced_text(), "e");
  EXPECT_EQ(matcher.accept_text("bc"), 2u);
  EXPECT_EQ(matcher.forced_text(), "e");
  matcher.rollback(1);
  EXPECT_EQ(matcher.accept_text("de"), 2u);
  EXPECT_TRUE(matcher.can_stop());
  expect_error(ErrorKind::input, {"take back"}, [&] { matcher.rollback(3); });
  expect_error(ErrorKind::input, {"token 98"}, [&] { matcher.accept(98); });
}

TEST(GrammarMatcher, ALongTextNeedsNoMoreThanTheLimit) {
  GrammarLimits limits;
  limits.configurations = 20'000;
  const auto grammar = std::make_shared<const Grammar>(
      GrammarSource{.kind = GrammarSource::Kind::json_schema,
                    .text = R"({"type":"array","items":{"type":"string","maxLength":300}})",
                    .choices = {}},
      test_vocabulary().shared, limits);
  Matcher matcher(grammar);
  EXPECT_EQ(matcher.accept_text("["), 1u);
  for (int i = 0; i < 400; ++i) {
    const std::string text =
        (i > 0 ? ", \"" : "\"") + std::string(static_cast<std::size_t>(i) % 300, 'a') + "\"";
    ASSERT_EQ(matcher.accept_text(text), text.size()) << i;
  }
  EXPECT_EQ(matcher.accept_text("]"), 1u);
  EXPECT_TRUE(matcher.can_stop());
}

TEST(GrammarMatcher, AStepThatTakesTooLongEndsTheAnswer) {
  GrammarLimits limits;
  limits.step_time = std::chrono::milliseconds(0);
  const auto grammar = std::make_shared<const Grammar>(
      GrammarSource{
          .kind = GrammarSource::Kind::regex, .text = "([a-z]{3,9} [A-Za-z0-9]{2,7}){5,9}", .choices = {}},
      test_vocabulary().shared, limits);
  Matcher matcher(grammar);
  std::vector<std::uint32_t> bits(matcher.mask_words());
  const std::string text = "abcdef ABCdef9";
  expect_error(ErrorKind::resource, {"0 ms"}, [&] {
    for (std::size_t i = 0; i < 5 * text.size(); ++i) {
      matcher.mask(bits);
      matcher.accept_text(text.substr(i % text.size(), 1));
    }
  });
}

TEST(GrammarCache, ManyThreadsShareGrammars) {
  GrammarCache cache(test_vocabulary().shared, 4);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t thread = 0; thread < wrong.size(); ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 30; ++i) {
        const int limit = i % 6 + 1;
        GrammarSource source{.kind = GrammarSource::Kind::json_schema,
                             .text = fmt::format(R"({{"type":"string","maxLength":{}}})", limit),
                             .choices = {}};
        Matcher matcher(cache.get(source));
        std::vector<std::uint32_t> bits(matcher.mask_words());
        matcher.mask(bits);
        const std::string fits = "\"" + std::string(static_cast<std::size_t>(limit), 'a') + "\"";
        if (matcher.accept_text(fits) != fits.size() || !matcher.can_stop()) ++wrong[thread];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
  const GrammarSource source{.kind = GrammarSource::Kind::json, .text = "", .choices = {}};
  EXPECT_EQ(cache.get(source), cache.get(source));
}

}  // namespace
}  // namespace sluice
