// Constraints on answers, and the parsing of answers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "generation.h"
#include "sluice/answer_guide.h"
#include "sluice/error.h"
#include "unlocked.h"

namespace sluice::python {

namespace {

ToolChoice choice_of(const std::string& name) {
  if (name == "auto") return ToolChoice::automatic;
  if (name == "none") return ToolChoice::none;
  if (name == "required") return ToolChoice::required;
  return ToolChoice::named;
}

GrammarSource::Kind kind_of(const std::string& name) {
  using Kind = GrammarSource::Kind;
  if (name == "json") return Kind::json;
  if (name == "schema") return Kind::json_schema;
  if (name == "regex") return Kind::regex;
  if (name == "grammar") return Kind::ebnf;
  if (name == "choices") return Kind::choice;
  throw Error(ErrorKind::input,
              "there is no form '" + name + "', there are json, schema, regex, grammar and choices");
}

// (kind, text, choices)
using Form = std::tuple<std::string, std::string, std::vector<std::string>>;

// An AnswerRequest in Python's terms, with its prompt.
struct Asked {
  std::string prompt;
  std::optional<Form> form;  // of the text
  std::string tools;
  std::string tool_choice = "none";
  bool parallel_calls = true;
  std::optional<std::int64_t> max_thinking_tokens;
  bool chat = false;
};

AnswerPlan plan(const Engine& engine, const Asked& asked) {
  AnswerRequest request;
  request.prompt = asked.prompt;
  if (asked.form) {
    const auto& [kind, text, choices] = *asked.form;
    GrammarSource source;
    source.kind = kind_of(kind);
    source.text = text;
    source.choices = choices;
    request.content = std::move(source);
  }
  request.tools = asked.tools;
  request.choice = choice_of(asked.tool_choice);
  if (request.choice == ToolChoice::named) request.tool = asked.tool_choice;
  request.parallel_calls = asked.parallel_calls;
  request.max_thinking_tokens = asked.max_thinking_tokens;
  request.chat = asked.chat;
  const Unlocked unlocked;
  return plan_answer(engine, request);
}

nb::list to_python(const std::vector<AnswerDelta>& deltas) {
  constexpr const char* kKinds[] = {"thinking", "content", "call"};
  nb::list made;
  for (const AnswerDelta& delta : deltas)
    made.append(nb::make_tuple(kKinds[static_cast<std::size_t>(delta.kind)], to_str(delta.text),
                               delta.function, delta.malformed_call));
  return made;
}

}  // namespace

void bind_answers(nb::module_& module) {
  nb::class_<AnswerParser>(module, "AnswerParser")
      .def("push", [](AnswerParser& parser, const std::string& text) { return to_python(parser.push(text)); })
      .def("finish", [](AnswerParser& parser) { return to_python(parser.finish()); });
  nb::class_<AnswerPlan>(module, "AnswerPlan")
      .def("apply",
           [](const AnswerPlan& plan, GenerateOptions& options) {
             options.guide = plan.guide;
             options.skip_special = !plan.shows_special;
           })
      .def("parser", [](const AnswerPlan& plan) { return AnswerParser(plan.format, plan.types); });
  nb::class_<Asked>(module, "AnswerRequest")
      .def(nb::init<>())
      .def_rw("prompt", &Asked::prompt)
      .def_rw("form", &Asked::form, nb::arg("form").none())
      .def_rw("tools", &Asked::tools)
      .def_rw("tool_choice", &Asked::tool_choice)
      .def_rw("parallel_calls", &Asked::parallel_calls)
      .def_rw("max_thinking_tokens", &Asked::max_thinking_tokens, nb::arg("max_thinking_tokens").none())
      .def_rw("chat", &Asked::chat);
  module.def("plan_answer", &plan, nb::arg("engine"), nb::arg("request"));
}

}  // namespace sluice::python
