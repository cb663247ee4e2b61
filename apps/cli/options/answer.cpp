#include "options/answer.h"

#include <nlohmann/json.hpp>

#include "options/input.h"
#include "sluice/error.h"

namespace sluice::cli::options {

namespace {

constexpr std::int64_t kMostThinking = 1'000'000'000;

GrammarSource source(GrammarSource::Kind kind, std::string text, std::vector<std::string> choices = {}) {
  return {.kind = kind, .text = std::move(text), .choices = std::move(choices)};
}

}  // namespace

void Answer::add(Command& command) {
  command.group("Structured output");
  command.option("--schema", schema_,
                 "Make the answer a JSON document that is valid under the schema in this file");
  command.flag("--json-object", json_object_, "Make the answer a JSON object");
  command.option("--regex", regex_, "Make the answer match this regular expression");
  command.option("--grammar", grammar_, "Make the answer follow the GBNF or EBNF grammar in this file");
  command.list("--choice", choices_, "Make the answer one of these texts (repeat the option for each)");
  command.option("--tools", tools_,
                 "Tools that the model may call: a file with a JSON array in OpenAI's format");
  command.option("--tool-choice", tool_choice_, "Which tool to call: auto, none, required, or a tool's name");
  command.option("--max-thinking", max_thinking_, "End the model's thinking after this many tokens",
                 {0, kMostThinking}, "no limit");
}

void Answer::resolve() {
  const int forms = (schema_.empty() ? 0 : 1) + (json_object_ ? 1 : 0) + (regex_.empty() ? 0 : 1) +
                    (grammar_.empty() ? 0 : 1) + (choices_.empty() ? 0 : 1);
  if (forms > 1) fail_usage("only one of --schema, --json-object, --regex, --grammar and --choice");
  using Kind = GrammarSource::Kind;
  if (!schema_.empty()) request_.content = source(Kind::json_schema, read_input(schema_));
  if (json_object_) request_.content = source(Kind::json_schema, R"({"type": "object"})");
  if (!regex_.empty()) request_.content = source(Kind::regex, regex_);
  if (!grammar_.empty()) request_.content = source(Kind::ebnf, read_input(grammar_));
  if (!choices_.empty()) request_.content = source(Kind::choice, "", choices_);
  if (!tools_.empty()) request_.tools = read_input(tools_);
  parse_tools(request_.tools);  // throws if they are invalid
  if (tool_choice_ == "none") {
    request_.choice = ToolChoice::none;
  } else if (tool_choice_ == "required") {
    request_.choice = ToolChoice::required;
  } else if (tool_choice_ != "auto") {
    request_.choice = ToolChoice::named;
    request_.tool = tool_choice_;
  }
  if (tool_choice_ != "auto" && tools_.empty()) fail_usage("--tools as well when you give --tool-choice");
  request_.max_thinking_tokens = max_thinking_;
}

std::string Answer::template_variables() const {
  if (request_.tools.empty()) return "{}";
  return R"({"tools": )" + request_.tools + "}";
}

AnswerPlan Answer::plan(const Engine& engine, const std::string& prompt, bool chat) const {
  AnswerRequest request = request_;
  request.prompt = prompt;
  request.chat = chat;
  if (!chat && !request.tools.empty())
    throw Error(ErrorKind::input, "--tools needs a conversation, but this prompt is continued as raw text");
  return plan_answer(engine, request);
}

nlohmann::ordered_json answer_json(const AnswerPlan& plan, const std::string& text) {
  AnswerParser parser(plan.format, plan.types);
  std::vector<AnswerDelta> deltas = parser.push(text);
  for (AnswerDelta& delta : parser.finish()) deltas.push_back(std::move(delta));
  std::string thinking, content;
  auto calls = nlohmann::ordered_json::array();
  bool malformed = false;
  for (const AnswerDelta& delta : deltas) {
    malformed |= delta.malformed_call;
    if (delta.kind == AnswerDelta::Kind::call) {
      calls.push_back({{"name", delta.function}, {"arguments", nlohmann::ordered_json::parse(delta.text)}});
    } else {
      (delta.kind == AnswerDelta::Kind::thinking ? thinking : content) += delta.text;
    }
  }
  nlohmann::ordered_json json{{"thinking", thinking}, {"content", content}, {"calls", calls}};
  if (malformed) json["note"] = "the content contains a tool call that cannot be parsed";
  return json;
}

}  // namespace sluice::cli::options
