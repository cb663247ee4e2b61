// The form of complete answers: the parser of answers reads what the automaton allows.
#include <gtest/gtest.h>

#include <random>

#include "expect_error.h"
#include "sluice/answer.h"
#include "unit/grammar/grammar_fixture.h"

namespace sluice {
namespace {

// The test vocabulary, and tokens for the markers of some models.
struct MarkerVocabulary {
  std::vector<std::string> bytes = test_vocabulary().bytes;
  std::vector<std::int32_t> named;
  std::shared_ptr<const GrammarVocabulary> shared;

  MarkerVocabulary() {
    for (const char* name : {"<think>", "</think>", "<tool_call>", "</tool_call>", "<｜tool▁calls▁begin｜>",
                             "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
                             "<｜tool▁sep｜>", "<|im_start|>"}) {
      named.push_back(static_cast<std::int32_t>(bytes.size()));
      bytes.emplace_back(name);
    }
    // Ordinary tokens that begin or end inside a marker.
    for (const char* piece :
         {"</", "think", ">\n", "k>{\"", "<tool", "_call", "_call>\n", "</th", "function="})
      bytes.emplace_back(piece);
    const std::int32_t stop[] = {TestVocabulary::kStop};
    shared = std::make_shared<GrammarVocabulary>(bytes, stop, named);
  }
  std::int32_t id(std::string_view name) const {
    for (const std::int32_t id : named)
      if (bytes[static_cast<std::size_t>(id)] == name) return id;
    ADD_FAILURE() << name;
    return -1;
  }
};

const MarkerVocabulary& markers() {
  static const MarkerVocabulary vocabulary;
  return vocabulary;
}

std::shared_ptr<const Grammar> answer_grammar(const AnswerSource& source, bool tokens = true) {
  return std::make_shared<const Grammar>(source, tokens ? markers().shared : test_vocabulary().shared);
}

AnswerFormat format_of(ToolCallFormat calls) {
  return {.calls = calls, .think_open = "<think>", .think_close = "</think>"};
}

// Matches tokens, with named ones given by their names.
bool takes(const std::shared_ptr<const Grammar>& grammar, const std::vector<std::string>& pieces) {
  Matcher matcher(grammar);
  for (const std::string& piece : pieces) {
    if (piece.starts_with('<') && piece.ends_with('>') && matcher.allows(markers().id(piece))) {
      matcher.accept(markers().id(piece));
    } else if (matcher.accept_text(piece) != piece.size()) {
      return false;
    }
  }
  return matcher.can_stop();
}

const AnswerTool kWeather = {.name = "get_weather", .parameters = R"({"type": "object", "properties": {
    "city": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "minimum": 1, "maximum": 9},
    "unit": {"enum": ["C", "F"]}, "where": {"$ref": "#/$defs/point"}},
    "required": ["city", "unit"], "additionalProperties": false,
    "$defs": {"point": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99},
                        "minItems": 2, "maxItems": 2}}})"};
const AnswerTool kStop = {.name = "stop", .parameters = {}};

TEST(AnswerSource, ThinkingComesBeforeTheGrammar) {
  AnswerSource source{.format = format_of(ToolCallFormat::none), .thinking = AnswerSource::Thinking::open};
  source.content = GrammarSource{.kind = GrammarSource::Kind::choice, .text = {}, .choices = {"yes", "no"}};
  const auto grammar = answer_grammar(source);
  EXPECT_TRUE(takes(grammar, {"Is yes < no? {\"a\": 日本", "</think>", "\n\n", "yes"}));
  EXPECT_TRUE(takes(grammar, {"</think>", "no"}));
  EXPECT_FALSE(takes(grammar, {"yes"}));                  // that is thinking, not an answer
  EXPECT_FALSE(takes(grammar, {"hm</think>\n\nmaybe"}));  // also if the marker is plain text
  Matcher matcher(grammar);
  EXPECT_TRUE(matcher.allows(markers().id("</think>")));
  EXPECT_FALSE(matcher.allows(markers().id("<|im_start|>")));
  EXPECT_FALSE(matcher.allows(TestVocabulary::kStop));
  source.thinking = AnswerSource::Thinking::allowed;
  const auto may = answer_grammar(source);
  EXPECT_TRUE(takes(may, {"yes"}));
  EXPECT_TRUE(takes(may, {"<think>", "maybe", "</think>", "yes"}));
  EXPECT_FALSE(takes(may, {"maybe"}));
}

TEST(AnswerSource, NamedTokensAreNeverText) {
  AnswerSource source;
  source.content = GrammarSource{.kind = GrammarSource::Kind::json, .text = {}, .choices = {}};
  Matcher matcher(answer_grammar(source));
  EXPECT_EQ(matcher.accept_text("\"a"), 2u);
  std::vector<std::uint32_t> bits(matcher.mask_words());
  matcher.mask(bits);
  for (const std::int32_t id : markers().named) {
    EXPECT_FALSE(matcher.allows(id));
    EXPECT_EQ(bits[static_cast<std::size_t>(id) >> 5] >> (id & 31) & 1, 0u);
  }
  EXPECT_EQ(matcher.accept_text("<think>\""), 8u);  // its characters are accepted
}

TEST(AnswerSource, AutomaticCallsAreHeldToTheTools) {
  AnswerSource source{.format = format_of(ToolCallFormat::json_in_tags)};
  source.tools = {kWeather, kStop};
  const auto grammar = answer_grammar(source);
  EXPECT_TRUE(takes(grammar, {"Just an answer, <b>bold</b> <tool"}));
  EXPECT_TRUE(takes(grammar, {""}));
  EXPECT_TRUE(
      takes(grammar, {"So: ", "<tool_call>", "\n{\"name\": \"stop\", \"arguments\": {}}\n", "</tool_call>"}));
  EXPECT_TRUE(takes(
      grammar,
      {"<tool_call>", "\n{\"name\": \"stop\", \"arguments\": {\"x\": [1]}}\n", "</tool_call>", "\n",
       "<tool_call>", "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"unit\": \"C\"}}",
       "</tool_call>"}));
  EXPECT_FALSE(
      takes(grammar, {"<tool_call>", "\n{\"name\": \"other\", \"arguments\": {}}\n", "</tool_call>"}));
  EXPECT_FALSE(takes(grammar, {"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}"}));
  source.parallel_calls = false;
  const std::vector<std::string> twice = {
      "<tool_call>", "{\"name\": \"stop\", \"arguments\": {}}", "</tool_call>",
      "<tool_call>", "{\"name\": \"stop\", \"arguments\": {}}", "</tool_call>"};
  EXPECT_TRUE(takes(grammar, twice));
  EXPECT_FALSE(takes(answer_grammar(source), twice));
}

TEST(AnswerSource, ACallEndsThinking) {
  AnswerSource source{.format = format_of(ToolCallFormat::json_in_tags),
                      .thinking = AnswerSource::Thinking::open};
  source.tools = {kStop};
  const auto grammar = answer_grammar(source);
  EXPECT_TRUE(
      takes(grammar, {"I stop ", "<tool_call>", "{\"name\": \"stop\", \"arguments\": {}}", "</tool_call>"}));
  EXPECT_FALSE(takes(grammar, {"I stop ", "<tool_call>", "never", "</think>", "ok"}));
  EXPECT_TRUE(takes(grammar, {"I go on", "</think>", "\n\nFine."}));
}

TEST(AnswerSource, WrongToolsAreRefused) {
  AnswerSource source{.format = format_of(ToolCallFormat::json_in_tags)};
  source.must_call = true;
  expect_error(ErrorKind::input, {"no tools"}, [&] { answer_grammar(source); });
  source.tools = {{.name = "f", .parameters = "[1]"}};
  expect_error(ErrorKind::input, {"'f'", "object"}, [&] { answer_grammar(source); });
  source.tools = {
      {.name = "f", .parameters = R"({"properties": {"a": {"format": "regex", "type": "string"}}})"}};
  answer_grammar(source);  // not strict: any object
  source.tools[0].strict = true;
  expect_error(ErrorKind::unsupported, {"'f'", "/properties/a"}, [&] { answer_grammar(source); });
}

// Parameters with tags of their own must not lose constraints silently.
TEST(AnswerSource, TagsDemandWhatTheSchemaDemands) {
  AnswerSource source{.format = format_of(ToolCallFormat::xml_parameters)};
  source.must_call = true;
  const auto refused = [&](const char* parameters, ErrorKind kind, std::string_view part) {
    source.tools = {{.name = "f", .parameters = parameters, .strict = true}};
    expect_error(kind, {"'f'", part}, [&] { answer_grammar(source); });
    source.tools[0].strict = false;
    answer_grammar(source);  // any parameters
  };
  refused(R"({"properties": {"a": {}}, "required": ["a", "b"]})", ErrorKind::unsupported, "'b'");
  refused(R"({"required": ["b"]})", ErrorKind::unsupported, "'b'");
  refused(R"({"properties": {"a": {}}, "required": true})", ErrorKind::input, "/required");
  refused(R"({"properties": {"a": {}}, "required": [1]})", ErrorKind::input, "/required");
  refused(R"({"properties": []})", ErrorKind::input, "/properties");
  refused(R"({"properties": {"a": {"type": "string", "pattern": 5}}})", ErrorKind::input, "pattern");
}

// Samples from masks until the answer is complete. Strings are kept short.
std::string random_answer(const std::shared_ptr<const Grammar>& grammar,
                          const std::vector<std::string>& bytes, std::mt19937& random) {
  Matcher matcher(grammar);
  std::vector<std::uint32_t> bits(matcher.mask_words());
  std::string answer;
  for (int step = 0; step < 3000 && !matcher.must_stop(); ++step) {
    matcher.mask(bits);
    std::vector<std::int32_t> choices, closing;
    for (std::size_t id = 0; id < bytes.size(); ++id) {
      if ((bits[id >> 5] >> (id & 31) & 1) == 0) continue;
      (bytes[id].find_first_of("\"}]>/\n") != std::string::npos || bytes[id].empty() ? closing : choices)
          .push_back(static_cast<std::int32_t>(id));
    }
    if (choices.empty() || (!closing.empty() && random() % 3 == 0)) choices = closing;
    if (choices.empty()) {
      ADD_FAILURE() << "nothing may follow " << answer;
      break;
    }
    const std::int32_t token = choices[random() % choices.size()];
    matcher.accept(token);
    answer += bytes[static_cast<std::size_t>(token)];
  }
  return matcher.must_stop() ? answer : "";
}

class RandomCalls : public testing::TestWithParam<std::tuple<ToolCallFormat, bool>> {};

TEST_P(RandomCalls, AreReadAsTheyWereDemanded) {
  const auto [calls, tokens] = GetParam();
  AnswerSource source{.format = format_of(calls)};
  source.tools = {kWeather, kStop};
  source.tools[1].parameters = R"({"properties": {}, "additionalProperties": false})";
  source.must_call = true;
  const auto grammar = answer_grammar(source, tokens);
  const auto weather = schema_grammar(kWeather.parameters);
  const std::vector<std::string>& bytes = tokens ? markers().bytes : test_vocabulary().bytes;
  std::mt19937 random(17);
  int complete = 0;
  for (int round = 0; round < 60; ++round) {
    const std::string answer = random_answer(grammar, bytes, random);
    if (answer.empty()) continue;  // it was too long
    ++complete;
    AnswerParser parser(source.format, parameter_types(source.tools));
    std::vector<AnswerDelta> deltas = parser.push(answer);
    for (AnswerDelta& delta : parser.finish()) deltas.push_back(std::move(delta));
    ASSERT_FALSE(deltas.empty()) << answer;
    for (const AnswerDelta& delta : deltas) {
      ASSERT_EQ(delta.kind, AnswerDelta::Kind::call) << answer;
      if (delta.function == "stop") {
        EXPECT_EQ(delta.text, "{}");
      } else {
        EXPECT_EQ(delta.function, "get_weather");
        EXPECT_TRUE(accepts(weather, delta.text)) << delta.text << "\nfrom " << answer;
      }
    }
  }
  EXPECT_GT(complete, 30);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, RandomCalls,
    testing::Combine(testing::Values(ToolCallFormat::json_in_tags, ToolCallFormat::xml_parameters,
                                     ToolCallFormat::deepseek_v3, ToolCallFormat::deepseek_v31,
                                     ToolCallFormat::plain_json),
                     testing::Bool()));

TEST(AnswerSource, MasksEqualSingleTokens) {
  AnswerSource source{.format = format_of(ToolCallFormat::xml_parameters),
                      .thinking = AnswerSource::Thinking::allowed};
  source.tools = {kWeather, kStop};
  Matcher matcher(answer_grammar(source));
  std::vector<std::uint32_t> bits(matcher.mask_words());
  const std::string text =
      "\n<think>a <\nb</think>\n\nNow <tool "
      "<tool_call>\n<function=get_weather>\n<parameter=city>\nX</p\n</parameter>\n"
      "<parameter=unit>\nC\n</parameter>\n<parameter=where>\n[1, 2]\n</parameter>\n</function>\n";
  for (const char c : text) {
    matcher.mask(bits);
    for (std::size_t id = 0; id < markers().bytes.size(); ++id)
      ASSERT_EQ((bits[id >> 5] >> (id & 31) & 1) != 0, matcher.allows(static_cast<std::int32_t>(id)))
          << markers().bytes[id];
    ASSERT_EQ(matcher.accept_text({&c, 1}), 1u) << "at " << c;
  }
  matcher.accept(markers().id("</tool_call>"));
  EXPECT_TRUE(matcher.can_stop());
}

}  // namespace
}  // namespace sluice
