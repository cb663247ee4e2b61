#include "server/api/chat_prompt.h"

#include <fmt/core.h>

#include "server/api_error.h"
#include "sluice/answer_guide.h"
#include "sluice/error.h"

namespace sluice::server::api {

namespace {

ApiError wrong_message(std::size_t index, std::string_view what, std::string_view field = {}) {
  const std::string param =
      field.empty() ? fmt::format("messages[{}]", index) : fmt::format("messages[{}].{}", index, field);
  return bad_request(fmt::format("Invalid '{}': {}.", param, what), param, "invalid_value");
}

// The texts of parts are joined: only text is supported.
std::string text_of(const Json& content, std::size_t index) {
  if (content.is_null()) return {};
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) throw wrong_message(index, "expected a string or an array of parts", "content");
  std::string text;
  for (const Json& part : content) {
    if (!part.is_object()) throw wrong_message(index, "a part must be an object", "content");
    const std::string type = part.value("type", Json()).is_string() ? part["type"].get<std::string>() : "";
    const char* field = type == "refusal" ? "refusal" : "text";
    const bool readable =
        type == "text" || type == "refusal" || type == "input_text" || type == "output_text";
    if (!readable)
      throw wrong_message(index, "this server only supports text, not a part of type '" + type + "'",
                          "content");
    if (!part.contains(field) || !part[field].is_string())
      throw wrong_message(index, "a part of text must hold a text", "content");
    text += part[field].get<std::string>();
  }
  return text;
}

Json calls_of(const Json& calls, std::size_t index) {
  if (!calls.is_array()) throw wrong_message(index, "expected an array", "tool_calls");
  Json out = Json::array();
  for (const Json& call : calls) {
    const bool known = call.is_object() && call.contains("function") && call["function"].is_object() &&
                       call["function"].contains("name") && call["function"]["name"].is_string();
    if (!known) throw wrong_message(index, "expected calls of functions with a name", "tool_calls");
    Json copy = call;
    Json& arguments = copy["function"]["arguments"];
    if (arguments.is_string()) {
      // Arguments that were not valid JSON when the model wrote them stay text.
      Json parsed = parse_or_null(arguments.get<std::string>());
      if (parsed.is_object()) arguments = std::move(parsed);
    }
    if (arguments.is_null()) arguments = Json::object();
    out.push_back(std::move(copy));
  }
  return out;
}

std::string role_of(const Json& message, std::size_t index) {
  if (!message.is_object()) throw wrong_message(index, "a message must be an object");
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string()) throw wrong_message(index, "a message has a role", "role");
  auto name = role->get<std::string>();
  if (name == "developer") return "system";
  if (name == "function") return "tool";
  for (const std::string_view known : {"system", "user", "assistant", "tool"})
    if (name == known) return name;
  throw wrong_message(index, "expected system, developer, user, assistant or tool", "role");
}

Json template_message(const Json& message, std::size_t index) {
  Json out{{"role", role_of(message, index)}};
  const auto find = [&](const char* name) -> const Json* {
    const auto at = message.find(name);
    return at == message.end() || at->is_null() ? nullptr : &*at;
  };
  const bool may_be_empty = out["role"] == "assistant";
  if (find("content") == nullptr && !may_be_empty)
    throw wrong_message(index, "expected a string or an array of parts", "content");
  out["content"] = find("content") ? text_of(*find("content"), index) : "";
  for (const char* name : {"reasoning_content", "reasoning"})
    if (const Json* thinking = find(name); thinking != nullptr && thinking->is_string())
      out["reasoning_content"] = *thinking;
  if (const Json* calls = find("tool_calls"); calls != nullptr && !calls->empty())
    out["tool_calls"] = calls_of(*calls, index);
  for (const char* name : {"name", "tool_call_id"})
    if (const Json* value = find(name)) out[name] = *value;
  return out;
}

// The beginning of the answer in the last message, without what the template opened.
std::string beginning(const Json& message, const AnswerFormat& format) {
  std::string content = message.at("content").get<std::string>();
  const std::string thinking = message.value("reasoning_content", std::string());
  if (format.think_open.empty()) return content;
  std::string text;
  if (!format.prompt_opens_thinking && !thinking.empty()) text += format.think_open + "\n";
  text += thinking;
  const bool thinks = format.prompt_opens_thinking || !thinking.empty();
  if (thinks && !content.empty()) text += "\n" + format.think_close + "\n\n";
  return text + content;
}

// Agents begin conversations with several messages of instructions or of the system, but many templates take
// one.
Json with_one_system_message(const Json& messages) {
  Json joined = Json::array();
  std::string text;
  std::size_t count = 0;
  for (; count < messages.size() && messages[count].at("role") == "system"; ++count)
    text += (text.empty() ? "" : "\n\n") + messages[count].at("content").get<std::string>();
  if (count > 0) joined.push_back({{"role", "system"}, {"content", text}});
  joined.insert(joined.end(), messages.begin() + static_cast<std::ptrdiff_t>(count), messages.end());
  return joined;
}

std::string tail_of(const std::string& prompt, const std::string& without_answer) {
  return prompt.starts_with(without_answer) ? prompt.substr(without_answer.size()) : prompt;
}

}  // namespace

Json template_messages(const Json& messages) {
  if (!messages.is_array() || messages.empty())
    throw bad_request("Invalid 'messages': expected an array with at least one message.", "messages",
                      "invalid_value");
  Json out = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i) out.push_back(template_message(messages[i], i));
  return out;
}

ChatPrompt render_chat(const ServedModel& model, const Json& messages, const ChatSettings& settings) {
  if (!model.engine->has_chat_template())
    throw bad_request("This model has no chat template; use completions.", "model");
  const bool continues = settings.continue_last && messages.size() > 1 &&
                         messages.back().at("role") == "assistant" && !messages.back().contains("tool_calls");
  Json past = messages;
  if (continues) past.erase(past.size() - 1);
  ChatPrompt prompt;
  const Engine& engine = *model.engine;
  const std::string variables = dump(settings.variables);
  const auto render = [&](const Json& told) {
    prompt.text = engine.render_chat(dump(told), true, variables);
    prompt.tail = tail_of(prompt.text, engine.render_chat(dump(told), false, variables));
  };
  try {
    try {
      render(past);
    } catch (const Error&) {
      const Json joined = with_one_system_message(past);
      if (joined.size() == past.size()) throw;
      render(joined);
    }
  } catch (const Error& error) {
    // Templates reject conversations they were not made for.
    throw bad_request(fmt::format("The model's chat template refuses these messages: {}", error.what()),
                      "messages");
  }
  if (continues) {
    const std::string text = beginning(messages.back(), answer_format(engine, prompt.tail));
    prompt.text += text;
    prompt.tail += text;
    prompt.continues = !text.empty();
  }
  prompt.ids = model.engine->encode(prompt.text);
  return prompt;
}

Json template_variables(const Json* kwargs, const std::string& reasoning_effort) {
  Json variables = kwargs == nullptr ? Json::object() : *kwargs;
  if (reasoning_effort.empty()) return variables;
  if (!variables.contains("reasoning_effort")) variables["reasoning_effort"] = reasoning_effort;
  if (reasoning_effort == "none" && !variables.contains("enable_thinking"))
    variables["enable_thinking"] = false;
  return variables;
}

}  // namespace sluice::server::api
