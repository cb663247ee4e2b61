#include "grammar/answer/call_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sluice::grammar::answer {
namespace {

using CallJson = nlohmann::ordered_json;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// Whether brackets nest too deeply for the recursive writer.
bool too_deep(std::string_view text) {
  constexpr int kMaxDepth = 500;
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  return deepest > kMaxDepth;
}

std::optional<CallJson> parse_json_text(std::string_view text) {
  if (too_deep(text)) return std::nullopt;
  CallJson value = CallJson::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

std::string dumped(const CallJson& value) {
  return value.dump(-1, ' ', false, CallJson::error_handler_t::replace);
}

std::optional<ParsedCall> call_of_object(const CallJson& value) {
  if (!value.is_object() || !value.contains("name") || !value["name"].is_string()) return std::nullopt;
  for (const char* key : {"arguments", "parameters"}) {
    if (!value.contains(key)) continue;
    const CallJson& arguments = value[key];
    if (arguments.is_object()) return ParsedCall{value["name"].get<std::string>(), dumped(arguments)};
    if (!arguments.is_string()) return std::nullopt;
    const std::optional<CallJson> inner =
        parse_json_text(arguments.get<std::string>());  // arguments encoded as a string
    if (!inner || !inner->is_object()) return std::nullopt;
    return ParsedCall{value["name"].get<std::string>(), dumped(*inner)};
  }
  return std::nullopt;
}

// Removes the text up to the marker, and the marker, and returns the text.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view marker) {
  const std::size_t end = text.find(marker);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end + marker.size());
  return taken;
}

CallJson parameter_value(std::string_view text, const std::string& type) {
  // The newlines around a value belong to the format.
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (!type.empty() && type != "string") {
    std::optional<CallJson> value = parse_json_text(text);
    if (value) return *std::move(value);
    if (type == "boolean" && (text == "True" || text == "False")) return text == "True";
    if (text == "None") return nullptr;
  }
  return std::string(text);
}

// Removes the value up to its closing tag, or up to the next opening one if the model forgot to close it.
// Strings in JSON values may contain anything.
std::optional<std::string_view> take_value(std::string_view& body, std::string_view type) {
  constexpr std::string_view kEnd = "</parameter>", kNext = "\n<parameter=";
  std::size_t end = std::string_view::npos;
  if (!type.empty() && type != "string") end = find_outside_strings(body, kEnd);
  if (end == std::string_view::npos) end = body.find(kEnd);
  const std::size_t next = body.find(kNext);
  if (next < end && parse_json_text(body.substr(0, end)) == std::nullopt) {
    const std::string_view value = body.substr(0, next + 1);
    body.remove_prefix(next + 1);
    return value;
  }
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view value = body.substr(0, end);
  body.remove_prefix(end + kEnd.size());
  return value;
}

// <function=name> <parameter=key>value</parameter> ... </function>; begin and end may be stripped already.
std::optional<ParsedCall> parse_xml(std::string_view begin, std::string_view body,
                                    const AnswerParser::ParameterTypes& types) {
  if (begin != "<function=") {
    body = trimmed(body);
    if (!body.starts_with("<function=")) return std::nullopt;
    body.remove_prefix(std::string_view("<function=").size());
    if (!body.ends_with("</function>")) return std::nullopt;
    body.remove_suffix(std::string_view("</function>").size());
  }
  const std::optional<std::string_view> name = take_until(body, ">");
  if (!name || trimmed(*name).empty()) return std::nullopt;
  const std::string function(trimmed(*name));
  const auto known = types.find(function);
  CallJson arguments = CallJson::object();
  for (body = trimmed(body); !body.empty(); body = trimmed(body)) {
    if (!body.starts_with("<parameter=")) return std::nullopt;
    body.remove_prefix(std::string_view("<parameter=").size());
    const std::optional<std::string_view> key = take_until(body, ">");
    if (!key || trimmed(*key).empty()) return std::nullopt;
    const std::string parameter(trimmed(*key));
    std::string type;
    if (known != types.end())
      if (const auto found = known->second.find(parameter); found != known->second.end())
        type = found->second;
    const std::optional<std::string_view> value = take_value(body, type);
    if (!value) return std::nullopt;
    arguments[parameter] = parameter_value(*value, type);
  }
  return ParsedCall{function, dumped(arguments)};
}

std::optional<ParsedCall> parse_deepseek(std::string_view body, bool v31) {
  constexpr std::string_view kSeparator = "<｜tool▁sep｜>";
  if (!v31 && trimmed(take_until(body, kSeparator).value_or("")) != "function") return std::nullopt;
  const std::optional<std::string_view> name = take_until(body, v31 ? kSeparator : "\n");
  if (!name || trimmed(*name).empty()) return std::nullopt;
  body = trimmed(body);
  if (!v31) {
    if (!body.starts_with("```json") || !body.ends_with("```")) return std::nullopt;
    body.remove_prefix(std::string_view("```json").size());
    body.remove_suffix(3);
  }
  const std::optional<CallJson> arguments = parse_json_text(body);
  if (!arguments || !arguments->is_object()) return std::nullopt;
  return ParsedCall{std::string(trimmed(*name)), dumped(*arguments)};
}

}  // namespace

const CallMarkers& call_markers(ToolCallFormat format) {
  static const CallMarkers kNone;
  static const CallMarkers kTags = {{"<tool_call>"}, {"</tool_call>"}, {}, {}};
  // Also accept calls of a model that forgets the outer tag.
  static const CallMarkers kXml = {
      {"<tool_call>", "<function="}, {"</tool_call>", "</function>"}, {}, {"</tool_call>"}};
  static const CallMarkers kDeepseek = {{"<｜tool▁call▁begin｜>"},
                                        {"<｜tool▁call▁end｜>"},
                                        {"<｜tool▁calls▁begin｜>"},
                                        {"<｜tool▁calls▁end｜>"}};
  switch (format) {
    case ToolCallFormat::json_in_tags:
      return kTags;
    case ToolCallFormat::xml_parameters:
      return kXml;
    case ToolCallFormat::deepseek_v3:
    case ToolCallFormat::deepseek_v31:
      return kDeepseek;
    default:
      return kNone;
  }
}

std::optional<ParsedCall> parse_call(ToolCallFormat format, std::string_view begin, std::string_view body,
                                     const AnswerParser::ParameterTypes& types) {
  switch (format) {
    case ToolCallFormat::json_in_tags: {
      const std::optional<CallJson> value = parse_json_text(trimmed(body));
      return value ? call_of_object(*value) : std::nullopt;
    }
    case ToolCallFormat::xml_parameters:
      return parse_xml(begin, body, types);
    case ToolCallFormat::deepseek_v3:
    case ToolCallFormat::deepseek_v31:
      return parse_deepseek(body, format == ToolCallFormat::deepseek_v31);
    default:
      return std::nullopt;
  }
}

std::optional<std::vector<ParsedCall>> parse_plain_calls(std::string_view answer) {
  const std::optional<CallJson> value = parse_json_text(trimmed(answer));
  if (!value) return std::nullopt;
  std::vector<ParsedCall> calls;
  const auto add = [&calls](const CallJson& one) {
    std::optional<ParsedCall> call = call_of_object(one);
    if (!call) return false;
    calls.push_back(*std::move(call));
    return true;
  };
  if (value->is_array()) {
    for (const CallJson& one : *value)
      if (!add(one)) return std::nullopt;
  } else if (!add(*value)) {
    return std::nullopt;
  }
  if (calls.empty()) return std::nullopt;
  return calls;
}

bool begins_like_plain_call(std::string_view answer) {
  if (parse_json_text(trimmed(answer))) return false;
  for (const std::string_view piece : {"[", "{"}) {
    answer.remove_prefix(std::min(answer.find_first_not_of(" \t\r\n"), answer.size()));
    if (answer.starts_with(piece)) {
      answer.remove_prefix(1);
    } else if (piece == "{") {
      return false;
    }
  }
  answer.remove_prefix(std::min(answer.find_first_not_of(" \t\r\n"), answer.size()));
  constexpr std::string_view kName = "\"name\"";
  return answer.starts_with(kName) || (!answer.empty() && kName.starts_with(answer));
}

std::size_t find_outside_strings(std::string_view text, std::string_view marker) {
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (inside) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == '"') {
        inside = false;
      }
    } else if (text[i] == '"') {
      inside = true;
    } else if (text.substr(i).starts_with(marker)) {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace sluice::grammar::answer
