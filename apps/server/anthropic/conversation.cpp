#include "server/anthropic/conversation.h"

#include <fmt/core.h>

#include "server/api/api_error.h"

namespace sluice::server::anthropic {

namespace {

// A line that one client puts before its system prompt and that differs with every request: whoever keeps it
// never finds a remembered prefix again.
constexpr std::string_view kBillingHeader = "x-anthropic-billing-header:";

ApiError wrong(const std::string& where, std::string_view what) {
  return bad_request(fmt::format("{}: {}", where, what), where);
}

std::string text_field(const Json& block, const char* name, const std::string& where) {
  const auto at = block.find(name);
  if (at == block.end() || !at->is_string())
    throw wrong(where + "." + name, "Input should be a valid string");
  return at->get<std::string>();
}

std::string type_of(const Json& block, const std::string& where) {
  if (!block.is_object()) throw wrong(where, "Input should be an object");
  return text_field(block, "type", where);
}

std::string text_of(const Json& content, const std::string& where) {
  if (content.is_null()) return {};
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) throw wrong(where, "Input should be a string or a list of blocks");
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}.{}", where, i);
    const std::string type = type_of(content[i], at);
    if (type != "text")
      throw wrong(at, "this model reads text alone, a block of type '" + type + "' it cannot read");
    text += text_field(content[i], "text", at);
  }
  return text;
}

std::string system_text(const Json& system) {
  if (!system.is_array()) return text_of(system, "system");
  std::string text;
  for (std::size_t i = 0; i < system.size(); ++i) {
    const std::string block = text_of(Json::array({system[i]}), fmt::format("system.{}", i));
    if (block.starts_with(kBillingHeader)) continue;
    text += (text.empty() ? "" : "\n\n") + block;
  }
  return text;
}

// One message may hold results of tools and text, which templates want as messages of their own.
class UserMessage {
 public:
  explicit UserMessage(Json& out) : out_(out) {}

  void add(const Json& block, const std::string& where) {
    const std::string type = type_of(block, where);
    if (type == "text") {
      text_ += text_field(block, "text", where);
    } else if (type == "tool_result") {
      flush();
      const Json content = block.contains("content") ? block["content"] : Json();
      std::string text = text_of(content, where + ".content");
      if (block.value("is_error", Json(false)) == true) text = "Error: " + text;
      out_.push_back(
          {{"role", "tool"}, {"content", text}, {"tool_call_id", text_field(block, "tool_use_id", where)}});
    } else {
      throw wrong(where, "this model reads text alone, a block of type '" + type + "' it cannot read");
    }
  }
  void flush() {
    if (!text_.empty()) out_.push_back({{"role", "user"}, {"content", text_}});
    text_.clear();
  }

 private:
  Json& out_;
  std::string text_;
};

Json assistant_message(const Json& content, const std::string& where) {
  Json message{{"role", "assistant"}, {"content", ""}};
  if (content.is_string()) {
    message["content"] = content;
    return message;
  }
  std::string text, thinking;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}.{}", where, i);
    const std::string type = type_of(content[i], at);
    if (type == "text") {
      text += text_field(content[i], "text", at);
    } else if (type == "thinking") {
      thinking += text_field(content[i], "thinking", at);
    } else if (type == "tool_use") {
      const Json input = content[i].contains("input") ? content[i]["input"] : Json::object();
      message["tool_calls"].push_back(
          {{"id", text_field(content[i], "id", at)},
           {"type", "function"},
           {"function", {{"name", text_field(content[i], "name", at)}, {"arguments", input}}}});
    } else if (type != "redacted_thinking") {
      throw wrong(at, "an assistant's block is text, thinking or tool_use");
    }
  }
  message["content"] = text;
  if (!thinking.empty()) message["reasoning_content"] = thinking;
  return message;
}

void add_message(const Json& message, std::size_t index, Json& out) {
  const std::string where = fmt::format("messages.{}", index);
  if (!message.is_object()) throw wrong(where, "Input should be an object");
  const std::string role = text_field(message, "role", where);
  const auto content = message.find("content");
  if (content == message.end() || !(content->is_string() || content->is_array()))
    throw wrong(where + ".content", "Input should be a string or a list of blocks");
  if (role == "assistant") {
    out.push_back(assistant_message(*content, where + ".content"));
  } else if (role == "user" && content->is_string()) {
    out.push_back({{"role", "user"}, {"content", *content}});
  } else if (role == "user") {
    UserMessage user(out);
    for (std::size_t i = 0; i < content->size(); ++i)
      user.add((*content)[i], fmt::format("{}.content.{}", where, i));
    user.flush();
  } else {
    throw wrong(where + ".role", "Input should be 'user' or 'assistant'");
  }
}

}  // namespace

Json template_messages(const Json& system, const Json& messages) {
  if (!messages.is_array() || messages.empty()) throw wrong("messages", "at least one message is required");
  Json out = Json::array();
  const std::string text = system_text(system);
  if (!text.empty()) out.push_back({{"role", "system"}, {"content", text}});
  for (std::size_t i = 0; i < messages.size(); ++i) add_message(messages[i], i, out);
  return out;
}

}  // namespace sluice::server::anthropic
