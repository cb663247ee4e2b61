// Parses what a model writes into thinking, text and tool calls. The format is recognised from what the
// model's own chat template makes of a probe, not selected by a flag.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/grammar.h"

namespace sluice {

enum class ToolCallFormat {
  none,
  json_in_tags,    // <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Qwen3, Hermes
  xml_parameters,  // <tool_call><function=...><parameter=...>: Qwen3-Coder, Qwen3.5
  deepseek_v3,     // function, name and a block of JSON between DeepSeek's markers: V3, R1
  deepseek_v31,    // name and JSON between DeepSeek's markers: V3.1
  plain_json,      // the answer is the call
};

struct AnswerFormat {
  ToolCallFormat calls = ToolCallFormat::none;
  std::string think_open, think_close;  // empty if the model does not think
  bool prompt_opens_thinking = false;   // the prompt already holds think_open
  bool prompt_ends_thinking = false;    // and think_close: the answer begins without thinking
  bool continues = false;               // the prompt begins the answer: leading whitespace counts
};

// The contents of a probe conversation, whose rendering reveals the format: an assistant message with this
// thinking, and one with a call of this function with one argument.
struct AnswerProbe {
  static constexpr std::string_view kFunction = "sluice_probe_function";
  static constexpr std::string_view kArgument = "sluice_probe_argument";
  static constexpr std::string_view kValue = "sluice probe value";
  static constexpr std::string_view kThinking = "sluice probe thinking";
};

// `call` is the rendering of the probe, `prompt` that of a question with the generation prompt.
AnswerFormat recognize_answer_format(std::string_view call, std::string_view prompt);

// A function that a model may call.
struct AnswerTool {
  std::string name;
  std::string parameters;  // the JSON schema of its arguments; empty: any object
  // Whether an invalid or unsupported schema is an error. Otherwise any object is accepted.
  bool strict = false;
};

// What a whole answer may be: thinking, then text or calls.
struct AnswerSource {
  enum class Thinking {
    no,       // the answer begins at once
    allowed,  // the model may open it
    open,     // the prompt has opened it
  };

  AnswerFormat format;
  Thinking thinking = Thinking::no;
  std::optional<GrammarSource> content = {};  // constrains the text; without one, any text is allowed
  std::vector<AnswerTool> tools = {};         // those that may be called
  bool must_call = false;                     // there is no text, only calls
  bool parallel_calls = true;
};

struct AnswerDelta {
  enum class Kind { thinking, content, call };

  Kind kind = Kind::content;
  std::string text = {};        // of thinking or content, or the arguments of a call as JSON
  std::string function = {};    // of a call
  bool malformed_call = false;  // this content was meant to be a tool call but cannot be parsed as one
};

// Parses one answer as it arrives; the joined deltas do not depend on how the text was split.
class AnswerParser {
 public:
  // The types of parameters by function, if known: XML parameters are text unless their type says
  // otherwise.
  using ParameterTypes = std::map<std::string, std::map<std::string, std::string>>;

  explicit AnswerParser(AnswerFormat format, ParameterTypes types = {});
  ~AnswerParser();
  AnswerParser(AnswerParser&&) noexcept;

  std::vector<AnswerDelta> push(std::string_view text);
  // Call when the answer has ended: returns what was held back.
  std::vector<AnswerDelta> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The types that AnswerParser needs.
AnswerParser::ParameterTypes parameter_types(std::span<const AnswerTool> tools);

}  // namespace sluice
