#include "server/anthropic/conversation.h"

#include <fmt/core.h>

#include <optional>

#include "server/api_error.h"

namespace sluice::server::anthropic {

namespace {

// A line that one client puts before its system prompt and that differs in every request: with it, no cached
// prefix would ever be found again.
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

std::string text_of(const Json& content, const std::string& where);

// Wraps a block in tags of its kind with its title, so that the following text is not taken for a part of it.
std::string tagged(const char* tag, const Json& block, const std::string& text) {
  std::string out = fmt::format("<{}>\n", tag);
  for (const char* name : {"title", "source", "context"})
    if (const auto at = block.find(name); at != block.end() && at->is_string())
      out += fmt::format("<{0}>{1}</{0}>\n", name, at->get_ref<const std::string&>());
  return fmt::format("{}{}\n</{}>\n", out, text, tag);
}

std::string document_text(const Json& block, const std::string& where) {
  const auto source = block.find("source");
  if (source == block.end()) throw wrong(where + ".source", "Field required");
  const std::string at = where + ".source";
  const std::string type = type_of(*source, at);
  if (type == "text") return tagged("document", block, text_field(*source, "data", at));
  if (type == "content")
    return tagged("document", block, text_of(source->value("content", Json()), at + ".content"));
  throw wrong(at, "this server only supports text, not a document of type '" + type + "'");
}

std::string block_text(const Json& block, const std::string& where) {
  const std::string type = type_of(block, where);
  if (type == "text") return text_field(block, "text", where);
  if (type == "document") return document_text(block, where);
  if (type == "search_result")
    return tagged("search_result", block, text_of(block.value("content", Json()), where + ".content"));
  throw wrong(where, "this server only supports text, not a block of type '" + type + "'");
}

// The parser limits the depth of JSON.
// NOLINTNEXTLINE(misc-no-recursion)
std::string text_of(const Json& content, const std::string& where) {
  if (content.is_null()) return {};
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) throw wrong(where, "Input should be a string or a list of blocks");
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i)
    text += block_text(content[i], fmt::format("{}.{}", where, i));
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

// One message may hold tool results and text, which templates expect as separate messages.
class UserMessage {
 public:
  explicit UserMessage(Json& out) : out_(out) {}

  void add(const Json& block, const std::string& where) {
    if (type_of(block, where) == "tool_result") {
      flush();
      const Json content = block.contains("content") ? block["content"] : Json();
      std::string text = text_of(content, where + ".content");
      if (block.value("is_error", Json(false)) == true) text = "Error: " + text;
      out_.push_back(
          {{"role", "tool"}, {"content", text}, {"tool_call_id", text_field(block, "tool_use_id", where)}});
    } else {
      if (!text_) text_.emplace();
      *text_ += block_text(block, where);
    }
  }
  void flush() {
    if (text_) out_.push_back({{"role", "user"}, {"content", *text_}});
    text_.reset();
  }

 private:
  Json& out_;
  std::optional<std::string> text_;  // of the blocks since the last result
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
  } else if (role == "system") {
    out.push_back({{"role", "system"}, {"content", text_of(*content, where + ".content")}});
  } else if (role == "user") {
    if (content->empty()) throw wrong(where + ".content", "user messages must have non-empty content");
    UserMessage user(out);
    for (std::size_t i = 0; i < content->size(); ++i)
      user.add((*content)[i], fmt::format("{}.content.{}", where, i));
    user.flush();
  } else {
    throw wrong(where + ".role", "Input should be 'user', 'assistant' or 'system'");
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
