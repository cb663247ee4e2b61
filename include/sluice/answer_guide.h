// What an answer may be and how it is read, from what a request asks for and from the model's own chat
// template: text of a given form, calls of tools, and thinking before either.
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
  // As rendered: its end tells whether thinking is open.
  std::string_view prompt;
  bool continues = false;                     // and it ends with the beginning of the answer
  std::optional<GrammarSource> content = {};  // the form of the text
  // A JSON array of tools: {"type": "function", "function": {"name", "parameters", "strict"}}, or the same
  // without the inner object.
  std::string tools = {};
  ToolChoice choice = ToolChoice::automatic;
  std::string tool = {};  // with ToolChoice::named
  bool parallel_calls = true;
  // Whether a tool's schema that is not supported is refused, unless the tool itself says so.
  bool strict = false;
  // Thinking is closed by force after so many tokens; 0 leaves none.
  std::optional<std::int64_t> max_thinking_tokens = {};
  bool chat = true;  // false: a raw text, in which nothing is thinking or a call
};

struct AnswerPlan {
  std::shared_ptr<TokenGuide> guide;  // for one answer; null where every token may come
  AnswerFormat format;                // for an AnswerParser, with the types
  AnswerParser::ParameterTypes types;
  // The answer's text must be made with special tokens in it, because some are markers of its format.
  bool shows_special = false;
};

// Fails with kind `input` for what is wrong and `unsupported` for what is not supported. What is compiled is
// remembered by the engine. May be called from any thread.
AnswerPlan plan_answer(const Engine& engine, const AnswerRequest& request);

// A guide by a grammar alone.
std::shared_ptr<TokenGuide> grammar_guide(std::shared_ptr<const Grammar> grammar);

// The format of a model's answers, by its chat template; `prompt` is the one to be answered. A model whose
// template knows no calls is given the plain one.
AnswerFormat answer_format(const Engine& engine, std::string_view prompt);

// The tools of a JSON array, checked.
std::vector<AnswerTool> parse_tools(std::string_view json, bool strict = false);

}  // namespace sluice
