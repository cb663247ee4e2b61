#include "chat/conversation.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "json.h"
#include "sluice/error.h"

namespace sluice::cli::chat {

namespace {

bool has_role(const nlohmann::ordered_json& message, const char* role) {
  return message.at("role") == role;
}

}  // namespace

Conversation::Conversation(const Engine& engine, Responder& responder, WhenFull when_full)
    : engine_(engine), responder_(responder), when_full_(when_full) {}

Answer Conversation::ask(const std::string& message, const GenerateOptions& options, const Show& show) {
  const nlohmann::ordered_json before = messages_;
  messages_.push_back({{"role", "user"}, {"content", message}});
  try {
    return answer(options, show);
  } catch (const Error&) {
    messages_ = before;
    throw;
  }
}

Answer Conversation::retry(const GenerateOptions& options, const Show& show) {
  const nlohmann::ordered_json before = messages_;
  if (has_role(messages_.back(), "assistant")) messages_.erase(messages_.size() - 1);
  try {
    return answer(options, show);
  } catch (const Error&) {
    messages_ = before;
    throw;
  }
}

bool Conversation::can_retry() const {
  return messages_.size() > first_turn();
}

bool Conversation::undo() {
  if (!can_retry()) return false;
  while (messages_.size() > first_turn()) {
    const bool user = has_role(messages_.back(), "user");
    messages_.erase(messages_.size() - 1);
    if (user) break;
  }
  return true;
}

void Conversation::clear() {
  while (messages_.size() > first_turn()) messages_.erase(messages_.size() - 1);
}

void Conversation::set_system(const std::string& text) {
  if (first_turn() > 0) messages_.erase(std::size_t{0});
  if (text.empty()) return;
  const nlohmann::ordered_json message{{"role", "system"}, {"content", text}};
  messages_.insert(messages_.begin(), message);
}

std::string Conversation::system() const {
  return first_turn() > 0 ? messages_.at(0).at("content").get<std::string>() : "";
}

void Conversation::set_messages(nlohmann::ordered_json messages) {
  const auto is_message = [](const nlohmann::ordered_json& message) {
    return message.is_object() && message.contains("role") && message["role"].is_string() &&
           message.contains("content") && message["content"].is_string();
  };
  if (!messages.is_array() || !std::all_of(messages.begin(), messages.end(), is_message))
    throw Error(ErrorKind::input,
                "a conversation is an array of messages with the texts \"role\" and \"content\"");
  messages_ = std::move(messages);
}

std::string Conversation::render() const {
  return engine_.render_chat(dump(messages_));
}

Answer Conversation::answer(const GenerateOptions& options, const Show& show) {
  Answer answer;
  answer.forgotten = make_room(options.max_tokens);
  const std::string rendered = render();
  ids_ = encode(rendered);
  seen_.clear();
  Responder::Response response = responder_.answer(ids_, options, show);
  answer.result = std::move(response.result);
  answer.kept = response.kept;
  messages_.push_back({{"role", "assistant"}, {"content", answer.result.text}});
  remember(rendered, answer.result);
  return answer;
}

std::size_t Conversation::make_room(std::int64_t max_tokens) {
  const std::int64_t capacity = context_size();
  // If old turns can be dropped, a quarter of the context is kept free for the answer.
  const std::int64_t answer = when_full_ == WhenFull::shift ? std::min(max_tokens, capacity / 4) : 1;
  const std::size_t before = messages_.size();
  for (;;) {
    const auto tokens = std::ssize(engine_.encode(render()));
    if (tokens + answer <= capacity) return before - messages_.size();
    if (when_full_ == WhenFull::stop)
      throw Error(ErrorKind::input,
                  fmt::format("the context is full: {} of {} tokens; /clear starts over, /undo takes the "
                              "last message back, and --ctx or --when-full shift makes room",
                              tokens, capacity));
    if (!forget_oldest_turn()) {
      if (tokens < capacity) return before - messages_.size();
      throw Error(ErrorKind::input,
                  fmt::format("this message alone has {} tokens, the context {}; --ctx allows more", tokens,
                              capacity));
    }
  }
}

bool Conversation::forget_oldest_turn() {
  const std::size_t first = first_turn();
  std::size_t next = first + 1;
  while (next < messages_.size() && !has_role(messages_.at(next), "user")) ++next;
  if (next >= messages_.size()) return false;  // only the message to answer is left
  for (std::size_t i = first; i < next; ++i) messages_.erase(first);
  return true;
}

// The ids of earlier turns are kept: encoding an answer's text again could split it differently. If a
// template rewrites earlier turns, everything is encoded again.
std::vector<std::int32_t> Conversation::encode(const std::string& rendered) const {
  if (seen_.empty() || !rendered.starts_with(seen_)) return engine_.encode(rendered);
  std::vector<std::int32_t> ids = ids_;
  const std::vector<std::int32_t> rest = engine_.encode(rendered.substr(seen_.size()));
  ids.insert(ids.end(), rest.begin(), rest.end());
  return ids;
}

void Conversation::remember(const std::string& rendered, const GenerateResult& answer) {
  if (engine_.decode(answer.ids) == answer.text) seen_ = rendered + answer.text;
  ids_.insert(ids_.end(), answer.ids.begin(), answer.ids.end());
}

std::size_t Conversation::first_turn() const {
  return !messages_.empty() && has_role(messages_.at(0), "system") ? 1 : 0;
}

}  // namespace sluice::cli::chat
