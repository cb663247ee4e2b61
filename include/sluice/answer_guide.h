// Turns a request into the guide that constrains its answer and into what is needed to parse it, by the
// model's own chat template: text of a given form, tool calls, and thinking before either.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/answer.h"
#include "sluice/engine.h"
#include "sluice/grammar.h"
#include "sluice/token_guide.h"

namespace sluice {

enum class ToolChoice {
  automatic,  // text or calls
  none,       // text
  required,   // calls
  named,      // one call of one tool
};

struct AnswerRequest {
  // The rendered prompt; its end shows whether thinking is open.
  std::string_view prompt;
  bool continues = false;                     // whether the prompt ends with the beginning of the answer
  std::optional<GrammarSource> content = {};  // the form of the text
  // A JSON array of tools: {"type": "function", "function": {"name", "parameters", "strict"}}, or the same
  // without the inner object.
  std::string tools = {};
  ToolChoice choice = ToolChoice::automatic;
  std::string tool = {};  // with ToolChoice::named
  bool parallel_calls = true;
  // Whether a tool's unsupported schema is an error, unless the tool itself says so.
  bool strict = false;
  // Thinking is ended after this many tokens; 0: no thinking.
  std::optional<std::int64_t> max_thinking_tokens = {};
  bool chat = true;  // false: raw text without thinking or tool calls
};

struct AnswerPlan {
  std::shared_ptr<TokenGuide> guide;  // for one answer; null if there is no constraint
  AnswerFormat format;                // for an AnswerParser, with the types
  AnswerParser::ParameterTypes types;
  // Whether the answer must be decoded with special tokens, because some are markers of its format.
  bool shows_special = false;
};

// Throws with kind `input` for invalid and `unsupported` for unsupported requests. The engine caches what it
// compiles. May be called from any thread.
AnswerPlan plan_answer(const Engine& engine, const AnswerRequest& request);

// A guide that follows a grammar only.
std::shared_ptr<TokenGuide> grammar_guide(std::shared_ptr<const Grammar> grammar);

// The format of a model's answers, by its chat template; `prompt` is the one to be answered. A model whose
// template has no tool calls gets the plain format.
AnswerFormat answer_format(const Engine& engine, std::string_view prompt);

// The tools of a JSON array, checked.
std::vector<AnswerTool> parse_tools(std::string_view json, bool strict = false);

}  // namespace sluice
