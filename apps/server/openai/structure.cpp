#include "server/openai/structure.h"

#include <fmt/core.h>

#include <algorithm>

#include "server/api_error.h"

namespace sluice::server::openai {

namespace {

GrammarSource source(GrammarSource::Kind kind, std::string text) {
  GrammarSource source;
  source.kind = kind;
  source.text = std::move(text);
  return source;
}

GrammarSource schema(const Json& json, const std::string& param) {
  if (!json.is_object() && !json.is_boolean())
    throw bad_request(fmt::format("Invalid '{}': expected a JSON schema.", param), param, "invalid_type");
  return source(GrammarSource::Kind::json_schema, dump(json));
}

GrammarSource any_object() {
  return source(GrammarSource::Kind::json_schema, R"({"type": "object"})");
}

std::optional<GrammarSource> read_response_format(api::Fields& fields) {
  const Json* format = fields.object("response_format");
  if (format == nullptr) return std::nullopt;
  const Json type = format->value("type", Json());
  if (type == "text") return std::nullopt;
  if (type == "json_object")
    return format->contains("schema") ? schema((*format)["schema"], "response_format") : any_object();
  if (type == "json_schema") {
    const Json inner = format->value("json_schema", Json());
    if (!inner.is_object() || !inner.contains("schema"))
      throw bad_request("Missing required parameter: 'response_format.json_schema.schema'.",
                        "response_format", "missing_required_parameter");
    return schema(inner["schema"], "response_format.json_schema.schema");
  }
  throw bad_request("Invalid 'response_format.type': expected text, json_object or json_schema.",
                    "response_format.type", "invalid_value");
}

GrammarSource choices(std::vector<std::string> texts) {
  GrammarSource choice;
  choice.kind = GrammarSource::Kind::choice;
  choice.choices = std::move(texts);
  return choice;
}

// The name in {"type": "function", "function": {"name"}}; in the responses protocol it is beside the type.
Json function_name(const Json& tool) {
  if (!tool.is_object() || tool.value("type", Json()) != "function") return {};
  const Json function = tool.value("function", Json());
  return function.is_object() ? function.value("name", Json()) : tool.value("name", Json());
}

// Keeps only the request's tools that {"type": "allowed_tools"} lists.
void allow_tools(const Json& choice, AnswerRequest& answer) {
  const auto wrong = [](const std::string& what) {
    return bad_request("Invalid 'tool_choice': " + what, "tool_choice", "invalid_value");
  };
  const Json allowed = choice.value("allowed_tools", choice);  // the responses protocol has no inner object
  const Json mode = allowed.is_object() ? allowed.value("mode", Json()) : Json();
  const Json names = allowed.is_object() ? allowed.value("tools", Json()) : Json();
  if ((mode != "auto" && mode != "required") || !names.is_array() || names.empty())
    throw wrong("allowed_tools has a mode, auto or required, and tools.");
  const Json all = answer.tools.empty() ? Json::array() : Json::parse(answer.tools);
  Json left = Json::array();
  for (const Json& one : names) {
    const Json name = function_name(one);
    const auto tool =
        std::find_if(all.begin(), all.end(), [&](const Json& known) { return function_name(known) == name; });
    if (!name.is_string() || tool == all.end())
      throw wrong("allowed_tools names one that is not in 'tools'.");
    left.push_back(*tool);
  }
  answer.tools = dump(left);
  if (mode == "required") answer.choice = ToolChoice::required;
}

void read_tool_choice(api::Fields& fields, AnswerRequest& answer) {
  const Json* choice = fields.find("tool_choice");
  if (choice == nullptr) return;
  if (choice->is_object() && choice->value("type", Json()) == "allowed_tools")
    return allow_tools(*choice, answer);
  if (choice->is_object()) {
    if (const Json name = function_name(*choice); name.is_string()) {
      answer.choice = ToolChoice::named;
      answer.tool = name.get<std::string>();
      return;
    }
  }
  if (*choice == "none")
    answer.choice = ToolChoice::none;
  else if (*choice == "required")
    answer.choice = ToolChoice::required;
  else if (*choice != "auto")
    throw bad_request("Invalid 'tool_choice': expected none, auto, required, a function or allowed_tools.",
                      "tool_choice", "invalid_value");
}

}  // namespace

void read_extras(api::Fields& fields, AnswerRequest& answer, std::string_view format) {
  constexpr std::size_t kMostChoices = 1000;
  std::string first(format);
  const auto take = [&](const std::string& name, GrammarSource source) {
    if (answer.content)
      throw bad_request(
          fmt::format("'{}' and '{}' both set the form of the answer: give only one of them.", first, name),
          name, "invalid_value");
    answer.content = std::move(source);
    first = name;
  };
  const auto read_schema = [&](const Json& value, const std::string& name) {
    return schema(value.is_string() ? parse_json(value.get<std::string>()) : value, name);
  };
  for (const char* name : {"guided_json", "json_schema"})
    if (const Json* value = fields.find(name)) take(name, read_schema(*value, name));
  if (const auto regex = fields.text("guided_regex"))
    take("guided_regex", source(GrammarSource::Kind::regex, *regex));
  for (const char* name : {"guided_grammar", "grammar"})
    if (const auto grammar = fields.text(name); grammar && !grammar->empty())
      take(name, source(GrammarSource::Kind::ebnf, *grammar));
  if (fields.has("guided_choice"))
    take("guided_choice", choices(fields.texts("guided_choice", kMostChoices)));
  const Json* structured = fields.object("structured_outputs");
  if (structured == nullptr) return;
  api::Fields inner(*structured);
  const std::string prefix = "structured_outputs.";
  if (const Json* json = inner.find("json")) take(prefix + "json", read_schema(*json, prefix + "json"));
  if (const auto regex = inner.text("regex"))
    take(prefix + "regex", source(GrammarSource::Kind::regex, *regex));
  if (const auto grammar = inner.text("grammar"))
    take(prefix + "grammar", source(GrammarSource::Kind::ebnf, *grammar));
  if (inner.has("choice")) take(prefix + "choice", choices(inner.texts("choice", kMostChoices)));
  if (inner.flag("json_object").value_or(false)) take(prefix + "json_object", any_object());
  inner.refuse_others();
}

AnswerRequest read_structure(api::Fields& fields) {
  AnswerRequest answer;
  answer.content = read_response_format(fields);
  read_extras(fields, answer, "response_format");
  if (const Json* tools = fields.array("tools"); tools != nullptr && !tools->empty())
    answer.tools = dump(*tools);
  read_tool_choice(fields, answer);
  if (answer.tools.empty() && answer.choice != ToolChoice::automatic && answer.choice != ToolChoice::none)
    throw bad_request("'tool_choice' is only allowed when 'tools' are specified.", "tool_choice");
  answer.parallel_calls = fields.flag("parallel_tool_calls").value_or(true);
  answer.max_thinking_tokens = fields.integer("max_thinking_tokens", 0, std::int64_t{1} << 31);
  return answer;
}

}  // namespace sluice::server::openai
