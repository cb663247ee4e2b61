// What a model writes, taken apart: thinking, text and calls of tools. The format is recognised from what the
// model's own chat template makes of a probe, not chosen by a flag.
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
  std::string think_open, think_close;  // empty where the model does not think
  bool prompt_opens_thinking = false;   // the prompt already holds think_open
  bool prompt_ends_thinking = false;    // and think_close: the answer begins without thinking
  bool continues = false;  // the prompt holds the beginning of the answer: blanks that follow count
};

// What a conversation must hold so that its rendering tells the format: an assistant's message with this
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
  // Whether a schema that is wrong or not supported is refused. Otherwise any object is then taken.
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
  std::optional<GrammarSource> content = {};  // of the text; without one, any text will do
  std::vector<AnswerTool> tools = {};         // those that may be called
  bool must_call = false;                     // there is no text, only calls
  bool parallel_calls = true;
};

struct AnswerDelta {
  enum class Kind { thinking, content, call };

  Kind kind = Kind::content;
  std::string text = {};        // of thinking or content, or the arguments of a call as JSON
  std::string function = {};    // of a call
  bool malformed_call = false;  // this content was meant to be a call, but is none
};

// Follows one answer as it comes; all deltas joined do not depend on where the text was cut.
class AnswerParser {
 public:
  // The types of parameters by function, where known: XML parameters are text unless their type says
  // otherwise.
  using ParameterTypes = std::map<std::string, std::map<std::string, std::string>>;

  explicit AnswerParser(AnswerFormat format, ParameterTypes types = {});
  ~AnswerParser();
  AnswerParser(AnswerParser&&) noexcept;

  std::vector<AnswerDelta> push(std::string_view text);
  // The answer has ended: what was held back.
  std::vector<AnswerDelta> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What the parser needs to know of the tools.
AnswerParser::ParameterTypes parameter_types(std::span<const AnswerTool> tools);

}  // namespace sluice
