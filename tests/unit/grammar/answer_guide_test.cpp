// Guides of an engine: a small model without any training for tools writes what the guide requires.
#include "sluice/answer_guide.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "expect_error.h"
#include "sluice/session.h"
#include "source_dir.h"
#include "temporary_folder.h"
#include "unit/grammar/grammar_fixture.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

// As in models of the Qwen3 family; `enable_thinking` switches thinking.
constexpr const char* kTemplate = R"({%- for message in messages %}
{{- '<|im_start|>' + message.role + '\n' }}
{%- if message.reasoning_content %}{{- '<think>\n' + message.reasoning_content + '\n</think>\n\n' }}{%- endif %}
{{- message.content }}
{%- for tool_call in message.tool_calls or [] %}
{{- '\n<tool_call>\n{"name": "' + tool_call.function.name + '", "arguments": ' + tool_call.function.arguments | tojson + '}\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\n<think>\n' }}
{%- if enable_thinking is defined and not enable_thinking %}{{- '\n</think>\n\n' }}{%- endif %}
{%- endif %})";

std::shared_ptr<Engine> model(const char* chat_template) {
  static TemporaryFolder folder;
  const fs::path copy = folder.path() / std::to_string(std::hash<std::string_view>()(chat_template));
  if (!fs::exists(copy)) {
    fs::create_directories(copy);
    for (const auto& file : fs::directory_iterator(fs::path(source_dir()) / "models/delta-story"))
      if (file.path().extension() != ".jinja") fs::create_symlink(file.path(), copy / file.path().filename());
    std::ofstream(copy / "chat_template.jinja") << chat_template;
  }
  return Engine::load(copy, {.backend = "cpu", .threads = 1});
}

const std::shared_ptr<Engine>& thinker() {
  static const std::shared_ptr<Engine> engine = model(kTemplate);
  return engine;
}

std::string question(const Engine& engine, bool thinking) {
  return engine.render_chat(R"([{"role": "user", "content": "What is <think>?"}])", true,
                            thinking ? "{}" : R"({"enable_thinking": false})");
}

struct Answer {
  std::string thinking, content;
  std::vector<std::pair<std::string, std::string>> calls;
  std::int64_t tokens = 0;
  bool complete = false;
};

Answer answer(Engine& engine, const AnswerRequest& request, std::uint64_t seed, std::int64_t limit = 400) {
  const AnswerPlan plan = plan_answer(engine, request);
  const auto session = engine.new_session(1024);
  session->extend(engine.encode(request.prompt));
  std::vector<std::uint8_t> allowed(static_cast<std::size_t>(engine.summary().vocab + 7) / 8, 0xAA);
  std::vector<std::int32_t> ids;
  Answer result;
  while (result.tokens < limit && !plan.guide->finished()) {
    EXPECT_TRUE(plan.guide->mask(allowed));
    const SampledToken token =
        session->sample({.temperature = 1.5, .seed = seed}, engine.summary().vocab, allowed);
    plan.guide->accept(token.id);
    ++result.tokens;
    if (plan.guide->finished() && std::ranges::count(engine.stop_ids(), token.id) > 0) break;
    ids.push_back(token.id);
    session->step(token.id);
  }
  result.complete = plan.guide->finished();
  AnswerParser parser(plan.format, plan.types);
  std::vector<AnswerDelta> deltas = parser.push(engine.decode(ids, !plan.shows_special));
  for (AnswerDelta& delta : parser.finish()) deltas.push_back(std::move(delta));
  for (const AnswerDelta& delta : deltas) {
    EXPECT_FALSE(delta.malformed_call) << delta.text;
    if (delta.kind == AnswerDelta::Kind::call) {
      result.calls.emplace_back(delta.function, delta.text);
    } else {
      (delta.kind == AnswerDelta::Kind::thinking ? result.thinking : result.content) += delta.text;
    }
  }
  return result;
}

constexpr const char* kTools = R"([{"type": "function", "function": {"name": "look_up", "parameters":
  {"type": "object", "properties": {"word": {"enum": ["sea", "ship"]}, "count": {"type": "integer", "minimum": 0,
   "maximum": 20}}, "required": ["word"], "additionalProperties": false}}},
  {"type": "function", "name": "leave", "parameters": {"type": "object", "properties": {},
   "additionalProperties": false}}])";

TEST(AnswerGuide, ThinkingIsClosedByForceAndTheSchemaHolds) {
  const std::string schema =
      R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer",
          "minimum": 0, "maximum": 150}}, "required": ["name", "age"], "additionalProperties": false})";
  const std::string prompt = question(*thinker(), true);
  AnswerRequest request{.prompt = prompt};
  request.content = GrammarSource{.kind = GrammarSource::Kind::json_schema, .text = schema, .choices = {}};
  request.max_thinking_tokens = 12;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Answer result = answer(*thinker(), request, seed);
    ASSERT_TRUE(result.complete);
    EXPECT_FALSE(result.thinking.empty());
    EXPECT_LE(thinker()->encode(result.thinking).size(), 16u);  // encoded again it may have more tokens
    EXPECT_TRUE(accepts(schema_grammar(schema), result.content)) << result.content;
  }
  const std::string closed = question(*thinker(), false);
  request.prompt = closed;
  const Answer result = answer(*thinker(), request, 9);
  EXPECT_TRUE(result.thinking.empty());
  EXPECT_TRUE(accepts(schema_grammar(schema), result.content)) << result.content;
}

TEST(AnswerGuide, ToolsAreCalledAsDemanded) {
  const std::string prompt = question(*thinker(), true);
  AnswerRequest request{.prompt = prompt};
  request.tools = kTools;
  request.choice = ToolChoice::required;
  request.parallel_calls = false;
  request.max_thinking_tokens = 5;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Answer result = answer(*thinker(), request, seed);
    ASSERT_TRUE(result.complete);
    ASSERT_EQ(result.calls.size(), 1u);
    EXPECT_TRUE(result.content.empty());
    EXPECT_TRUE(nlohmann::json::parse(result.calls[0].second).is_object());
  }
  request.choice = ToolChoice::named;
  request.tool = "leave";
  const Answer left = answer(*thinker(), request, 3);
  ASSERT_EQ(left.calls.size(), 1u);
  EXPECT_EQ(left.calls[0], std::make_pair(std::string("leave"), std::string("{}")));
  request.tool = "stay";
  expect_error(ErrorKind::input, {"'stay'"}, [&] { plan_answer(*thinker(), request); });
}

// A call ends thinking: its strings are not truncated by the closing tag.
TEST(AnswerGuide, ALimitOfThinkingDoesNotCutACall) {
  const Engine& engine = *thinker();
  const std::string prompt = question(engine, true);
  AnswerRequest request{.prompt = prompt};
  request.tools =
      R"([{"name": "say", "parameters": {"type": "object", "properties": {"text": {"type": "string"}},
    "required": ["text"], "additionalProperties": false}}])";
  const std::vector<std::int32_t> opening = engine.encode("<tool_call>");
  request.max_thinking_tokens = static_cast<std::int64_t>(opening.size());
  const AnswerPlan plan = plan_answer(engine, request);
  ASSERT_EQ(plan.format.calls, ToolCallFormat::json_in_tags);
  std::vector<std::uint8_t> allowed(static_cast<std::size_t>(engine.summary().vocab + 7) / 8);
  std::vector<std::int32_t> ids = opening;
  for (const std::int32_t id :
       engine.encode("\n{\"name\": \"say\", \"arguments\": {\"text\": \"Good day\"}}\n"))
    ids.push_back(id);
  for (const std::int32_t id : ids) {
    EXPECT_TRUE(plan.guide->mask(allowed));
    const auto at = static_cast<std::size_t>(id);
    ASSERT_TRUE(allowed[at / 8] >> (at % 8) & 1) << engine.decode(std::vector{id});
    plan.guide->accept(id);
  }
}

TEST(AnswerGuide, AModelWithoutCallsIsGivenThePlainForm) {
  const auto engine =
      Engine::load(fs::path(source_dir()) / "models/delta-story", {.backend = "cpu", .threads = 1});
  AnswerRequest request{.prompt = "Once upon a time"};
  request.tools = kTools;
  request.choice = ToolChoice::required;
  request.parallel_calls = false;
  const Answer result = answer(*engine, request, 1);
  EXPECT_EQ(plan_answer(*engine, request).format.calls, ToolCallFormat::plain_json);
  EXPECT_FALSE(result.calls.empty());
}

TEST(AnswerGuide, NothingIsDemandedNothingIsMasked) {
  const std::string prompt = question(*thinker(), true);
  AnswerRequest request{.prompt = prompt};
  const AnswerPlan plan = plan_answer(*thinker(), request);
  EXPECT_EQ(plan.guide, nullptr);
  EXPECT_EQ(plan.format.think_close, "</think>");
  EXPECT_TRUE(plan.format.prompt_opens_thinking);
  request.tools = kTools;
  request.choice = ToolChoice::none;
  EXPECT_EQ(plan_answer(*thinker(), request).guide, nullptr);
  EXPECT_EQ(plan_answer(*thinker(), request).format.calls, ToolCallFormat::none);
  request.choice = ToolChoice::automatic;
  EXPECT_EQ(plan_answer(*thinker(), request).format.calls, ToolCallFormat::json_in_tags);
}

TEST(AnswerGuide, WrongToolsAreRefused) {
  AnswerRequest request{.prompt = ""};
  const auto refused = [&](const char* tools, std::string_view part) {
    request.tools = tools;
    expect_error(ErrorKind::input, {part}, [&] { plan_answer(*thinker(), request); });
  };
  refused("{", "tools");
  refused("{}", "array");
  refused(std::string(100'000, '[').c_str(), "tools");
  refused("[1]", "objects");
  refused(R"([{"type": "web_search"}])", "type");
  refused(R"([{"type": "function", "function": {}}])", "name");
  refused(R"([{"name": "a b"}])", "'a b'");
  refused(R"([{"name": "a"}, {"name": "a"}])", "twice");
  refused(R"([{"name": "a", "parameters": {"type": "string"}}])", "'a'");
  refused(R"([{"name": "a", "strict": 1}])", "strict");
}

// The request's error is reported, because no resource of the machine is missing.
TEST(AnswerGuide, FormsThatPassTheirLimitsAreRefused) {
  AnswerRequest request{.prompt = "Once"};
  request.chat = false;
  request.content = GrammarSource{.kind = GrammarSource::Kind::regex,
                                  .text = std::string((std::size_t{10} << 20) + 1, 'a'),
                                  .choices = {}};
  expect_error(ErrorKind::unsupported, {"bytes"}, [&] { plan_answer(*thinker(), request); });
}

TEST(AnswerGuide, RawTextByAnExpression) {
  AnswerRequest request{.prompt = "Once"};
  request.chat = false;
  request.content =
      GrammarSource{.kind = GrammarSource::Kind::regex, .text = "( [a-z]{2,6}){3}\\.", .choices = {}};
  const Answer result = answer(*thinker(), request, 4);
  EXPECT_TRUE(result.complete);
  EXPECT_TRUE(accepts(make_grammar(GrammarSource::Kind::regex, "( ?[a-z]{2,6}){3}\\."), result.content))
      << result.content;
}

}  // namespace
}  // namespace sluice
