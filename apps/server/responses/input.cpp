#include "server/responses/input.h"

#include <fmt/core.h>

#include "server/api_error.h"

namespace sluice::server::responses {

namespace {

ApiError wrong(std::size_t index, std::string_view what) {
  const std::string param = fmt::format("input[{}]", index);
  return bad_request(fmt::format("Invalid '{}': {}.", param, what), param, "invalid_value");
}

std::string text_field(const Json& item, const char* name, std::size_t index) {
  const Json value = item.value(name, Json());
  if (!value.is_string()) throw wrong(index, fmt::format("expected a text '{}'", name));
  return value.get<std::string>();
}

// The last message, if it is the assistant's and has no content yet.
Json* unsaid_turn(Json& messages) {
  if (messages.empty() || messages.back().at("role") != "assistant") return nullptr;
  const Json& content = messages.back().at("content");
  return content.is_string() && content.get_ref<const std::string&>().empty() ? &messages.back() : nullptr;
}

// The assistant message for thinking and calls: consecutive ones form one message.
Json& assistant(Json& messages) {
  if (unsaid_turn(messages) == nullptr) messages.push_back({{"role", "assistant"}, {"content", ""}});
  return messages.back();
}

void add_reasoning(const Json& item, Json& messages) {
  std::string text;
  for (const char* name : {"content", "summary"}) {
    const Json parts = item.value(name, Json());
    if (!parts.is_array() || !text.empty()) continue;
    for (const Json& part : parts)
      if (part.is_object() && part.value("text", Json()).is_string()) text += part["text"].get<std::string>();
  }
  if (!text.empty()) assistant(messages)["reasoning_content"] = text;
}

void add_message(const Json& item, std::size_t index, Json& messages) {
  const std::string role = text_field(item, "role", index);
  const Json content = item.value("content", Json());
  if (!content.is_string() && !content.is_array()) throw wrong(index, "a message has a content");
  Json* const turn = role == "assistant" ? unsaid_turn(messages) : nullptr;
  if (turn != nullptr && turn->contains("reasoning_content"))
    (*turn)["content"] = content;
  else
    messages.push_back({{"role", role}, {"content", content}});
}

void add_call(const Json& item, std::size_t index, Json& messages) {
  const bool follows = !messages.empty() && messages.back().at("role") == "assistant";
  Json& message = follows ? messages.back() : assistant(messages);
  message["tool_calls"].push_back(
      {{"id", text_field(item, "call_id", index)},
       {"type", "function"},
       {"function",
        {{"name", name_in(item.value("namespace", Json()), text_field(item, "name", index))},
         {"arguments", text_field(item, "arguments", index)}}}});
}

}  // namespace

std::string name_in(const Json& name_space, const std::string& function) {
  return name_space.is_string() ? name_space.get<std::string>() + "__" + function : function;
}

Json input_items(const Json& input) {
  if (input.is_string()) return Json::array({{{"type", "message"}, {"role", "user"}, {"content", input}}});
  if (!input.is_array() || input.empty())
    throw bad_request("Invalid 'input': expected a string or an array of items.", "input", "invalid_type");
  return input;
}

Json messages_of(const Json& items) {
  Json messages = Json::array();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Json& item = items[i];
    if (!item.is_object()) throw wrong(i, "an item must be an object");
    const Json type = item.value("type", Json("message"));
    if (type == "message") {
      add_message(item, i, messages);
    } else if (type == "reasoning") {
      add_reasoning(item, messages);
    } else if (type == "function_call") {
      add_call(item, i, messages);
    } else if (type == "function_call_output") {
      const Json output = item.value("output", Json());
      if (!output.is_string() && !output.is_array()) throw wrong(i, "expected an 'output'");
      messages.push_back(
          {{"role", "tool"}, {"content", output}, {"tool_call_id", text_field(item, "call_id", i)}});
    } else {
      throw wrong(i, "this server only supports messages, reasoning and function calls");
    }
  }
  return messages;
}

}  // namespace sluice::server::responses
