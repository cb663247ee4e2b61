#include <algorithm>
#include <nlohmann/json.hpp>

#include "answer/answer_guide.h"
#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "engine/core.h"
#include "sluice/answer_guide.h"

namespace sluice {

namespace answer {
namespace {

std::shared_ptr<const GrammarVocabulary> make_vocabulary(const Engine& engine) {
  const text::Tokenizer& tokenizer = engine::core(engine).text();
  std::vector<std::string_view> bytes;
  std::vector<std::int32_t> named, stop;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    bytes.push_back(tokenizer.bytes(id));
    if (tokenizer.is_added(id)) named.push_back(id);
  }
  for (const std::int32_t id : engine.stop_ids())
    if (id >= 0 && id < tokenizer.vocab_size()) stop.push_back(id);
  return std::make_shared<const GrammarVocabulary>(bytes, stop, named);
}

// Preparing a vocabulary takes a moment, so it is done once, when first needed.
std::shared_ptr<GrammarCache> grammars(const Engine& engine) {
  engine::AnswerCache& cache = engine::core(engine).answers;
  const std::lock_guard lock(cache.mutex);
  if (!cache.grammars) cache.grammars = std::make_shared<GrammarCache>(make_vocabulary(engine));
  return cache.grammars;
}

using ProbeJson = nlohmann::ordered_json;

// Renders an assistant message with thinking and a call; some templates take arguments as an object, others
// as text.
std::string probe(const Engine& engine, bool arguments_as_text) {
  const std::string function(AnswerProbe::kFunction);
  const ProbeJson arguments{{std::string(AnswerProbe::kArgument), std::string(AnswerProbe::kValue)}};
  ProbeJson call{{"name", function}, {"arguments", arguments}};
  if (arguments_as_text) call["arguments"] = arguments.dump();
  ProbeJson assistant{
      {"role", "assistant"},
      {"content", ""},
      {"reasoning_content", std::string(AnswerProbe::kThinking)},
      {"tool_calls", ProbeJson::array({{{"id", "call_0"}, {"type", "function"}, {"function", call}}})}};
  const ProbeJson messages = ProbeJson::array({{{"role", "user"}, {"content", "?"}}, assistant});
  const ProbeJson parameters{{"type", "object"},
                             {"properties", {{std::string(AnswerProbe::kArgument), {{"type", "string"}}}}}};
  const ProbeJson tools = ProbeJson::array(
      {{{"type", "function"},
        {"function", {{"name", function}, {"description", "?"}, {"parameters", parameters}}}}});
  try {
    return engine.render_chat(messages.dump(), false, ProbeJson{{"tools", tools}}.dump());
  } catch (const Error&) {
    return {};  // the template does not support it
  }
}

std::string call_probe(const Engine& engine) {
  engine::AnswerCache& cache = engine::core(engine).answers;
  const std::lock_guard lock(cache.mutex);
  if (!cache.call_probe) {
    std::string rendered = engine.has_chat_template() ? probe(engine, false) : std::string();
    if (rendered.empty() && engine.has_chat_template()) rendered = probe(engine, true);
    cache.call_probe = std::move(rendered);
  }
  return *cache.call_probe;
}

AnswerTool parse_tool(const ProbeJson& tool, bool strict) {
  const auto refuse = [](std::string_view what) { fail(ErrorKind::input, "tools: {}", what); };
  if (!tool.is_object()) refuse("expected objects");
  const auto type = tool.find("type");
  if (type != tool.end() && *type != "function") refuse("a type other than 'function' is not supported");
  const auto inner = tool.find("function");
  const ProbeJson& function = inner == tool.end() ? tool : *inner;
  if (!function.is_object() || !function.contains("name") || !function["name"].is_string())
    refuse("a function has no name");
  AnswerTool result{.name = function["name"].get<std::string>(), .parameters = {}, .strict = strict};
  constexpr std::size_t kMaxName = 256;
  const bool fits = std::ranges::all_of(result.name, [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != '"' && c != '<' && c != '>' && c != '\\';
  });
  if (result.name.empty() || result.name.size() > kMaxName || !fits)
    fail(ErrorKind::input, "tools: {} is no name for a function", quote(result.name));
  for (const char* key : {"parameters", "input_schema"})
    if (function.contains(key) && !function[key].is_null()) result.parameters = function[key].dump();
  if (function.contains("strict") && !function["strict"].is_null()) {
    if (!function["strict"].is_boolean()) refuse("'strict' is neither true nor false");
    result.strict = function["strict"].get<bool>();
  }
  return result;
}

std::vector<AnswerTool> chosen_tools(const AnswerRequest& request) {
  std::vector<AnswerTool> tools = parse_tools(request.tools, request.strict);
  if (request.choice == ToolChoice::none) tools.clear();
  if (request.choice == ToolChoice::named) {
    std::erase_if(tools, [&](const AnswerTool& tool) { return tool.name != request.tool; });
    if (tools.empty())
      fail(ErrorKind::input, "the chosen tool {} is not among the tools", quote(request.tool));
  }
  if (request.choice == ToolChoice::required && tools.empty())
    fail(ErrorKind::input, "a tool call is required, but there are no tools");
  return tools;
}

AnswerSource::Thinking thinking_of(const AnswerFormat& format) {
  if (format.think_close.empty() || format.prompt_ends_thinking) return AnswerSource::Thinking::no;
  return format.prompt_opens_thinking ? AnswerSource::Thinking::open : AnswerSource::Thinking::allowed;
}

// The tokens that end thinking.
std::vector<std::int32_t> close_tokens(const Engine& engine, const AnswerFormat& format) {
  return engine.encode(format.think_close);
}

bool has_special_markers(const Engine& engine, const AnswerSource& source) {
  const text::Tokenizer& tokenizer = engine::core(engine).text();
  const auto special = [&](std::string_view marker) {
    const std::optional<std::int32_t> id = tokenizer.id(marker);
    return id && tokenizer.is_special(*id);
  };
  if (source.thinking != AnswerSource::Thinking::no && special(source.format.think_close)) return true;
  if (source.tools.empty()) return false;
  return special("<tool_call>") || special("<｜tool▁call▁begin｜>");
}

}  // namespace
}  // namespace answer

std::vector<AnswerTool> parse_tools(std::string_view json, bool strict) {
  if (json.empty()) return {};
  parse_json(json, {"tools", ErrorKind::input});  // strict checks
  const auto parsed = nlohmann::ordered_json::parse(json);
  if (parsed.is_null()) return {};
  if (!parsed.is_array()) fail(ErrorKind::input, "tools: expected a JSON array");
  std::vector<AnswerTool> tools;
  for (const auto& tool : parsed) {
    tools.push_back(answer::parse_tool(tool, strict));
    if (std::ranges::count(tools, tools.back().name, &AnswerTool::name) > 1)
      fail(ErrorKind::input, "tools: {} appears twice", quote(tools.back().name));
  }
  return tools;
}

AnswerFormat answer_format(const Engine& engine, std::string_view prompt) {
  AnswerFormat format = recognize_answer_format(answer::call_probe(engine), prompt);
  if (format.calls == ToolCallFormat::none) format.calls = ToolCallFormat::plain_json;
  return format;
}

std::shared_ptr<TokenGuide> grammar_guide(std::shared_ptr<const Grammar> grammar) {
  return std::make_shared<answer::AnswerGuide>(std::move(grammar));
}

AnswerPlan plan_answer(const Engine& engine, const AnswerRequest& request) {
  AnswerSource source;
  if (request.chat) {
    source.format = answer_format(engine, request.prompt);
    source.thinking = answer::thinking_of(source.format);
    source.tools = answer::chosen_tools(request);
  }
  source.must_call = request.choice == ToolChoice::required || request.choice == ToolChoice::named;
  source.content = request.content;
  source.parallel_calls = request.parallel_calls && request.choice != ToolChoice::named;
  if (source.tools.empty()) source.format.calls = ToolCallFormat::none;
  const bool limited = request.max_thinking_tokens && source.thinking != AnswerSource::Thinking::no;
  if (limited && *request.max_thinking_tokens < 0)
    fail(ErrorKind::input, "thinking is limited to {} tokens", *request.max_thinking_tokens);

  AnswerPlan plan;
  plan.format = source.format;
  plan.format.continues = request.continues;
  plan.types = parameter_types(source.tools);
  plan.shows_special = request.chat && engine.has_tokenizer() && answer::has_special_markers(engine, source);
  if (!source.content && source.tools.empty() && !limited) return plan;
  std::shared_ptr<answer::AnswerGuide> guide;
  answer::refuse_what_takes_too_much(
      [&] { guide = std::make_shared<answer::AnswerGuide>(answer::grammars(engine)->get(source)); });
  if (limited) {
    const text::Tokenizer& tokenizer = engine::core(engine).text();
    guide->limit_thinking(
        answer::ThinkingBudget(source.format, *request.max_thinking_tokens,
                               answer::close_tokens(engine, source.format)),
        [&tokenizer, owner = engine.shared_from_this()](std::int32_t id) { return tokenizer.bytes(id); });
  }
  plan.guide = std::move(guide);
  return plan;
}

}  // namespace sluice
