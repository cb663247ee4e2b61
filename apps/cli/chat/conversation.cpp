#include "chat/conversation.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "sluice/error.h"

namespace sluice::cli {

namespace {

bool has_role(const nlohmann::ordered_json& message, const char* role) {
  return message.at("role") == role;
}

}  // namespace

Conversation::Conversation(const Engine& engine, Session& session, WhenFull when_full)
    : engine_(engine), session_(session), when_full_(when_full) {}

Answer Conversation::ask(const std::string& message, const GenerateOptions& options, const Show& show) {
  const nlohmann::ordered_json before = messages_;
  messages_.push_back({{"role", "user"}, {"content", message}});
  try {
    return answer(options, show);
  } catch (const Error&) {
    messages_ = before;
    forget_state();
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
    forget_state();
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
  return engine_.render_chat(messages_.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Answer Conversation::answer(const GenerateOptions& options, const Show& show) {
  Answer answer;
  answer.forgotten = make_room(options.max_tokens);
  const std::string rendered = render();
  const std::vector<std::int32_t> added = unseen(rendered);
  answer.kept = session_.length();
  answer.result = generate(session_, added, options, show);
  messages_.push_back({{"role", "assistant"}, {"content", answer.result.text}});
  remember(rendered, answer);
  return answer;
}

std::size_t Conversation::make_room(std::int64_t max_tokens) {
  const std::int64_t capacity = session_.capacity();
  // An answer worth reading gets a quarter of the context, where turns can go to make that room.
  const std::int64_t answer = when_full_ == WhenFull::shift ? std::min(max_tokens, capacity / 4) : 1;
  const std::size_t before = messages_.size();
  for (;;) {
    const auto tokens = static_cast<std::int64_t>(engine_.encode(render()).size());
    if (tokens + answer <= capacity) return before - messages_.size();
    if (when_full_ == WhenFull::stop)
      throw Error(
          ErrorKind::input,
          fmt::format("the context is full: {} of {} tokens; /clear begins anew, /undo takes back, and --ctx "
                      "and --when-full shift make room",
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

// The ids to append. Where a template rewrites its past, everything is said anew.
std::vector<std::int32_t> Conversation::unseen(const std::string& rendered) {
  if (seen_.empty() || !rendered.starts_with(seen_)) {
    forget_state();
    return engine_.encode(rendered);
  }
  std::vector<std::int32_t> ids = std::exchange(pending_, {});
  const std::vector<std::int32_t> rest = engine_.encode(rendered.substr(seen_.size()));
  ids.insert(ids.end(), rest.begin(), rest.end());
  return ids;
}

// The answer's own ids stay: encoding its text again could split it otherwise.
void Conversation::remember(const std::string& rendered, const Answer& answer) {
  const GenerateResult& result = answer.result;
  seen_ = engine_.decode(result.ids) == result.text ? rendered + result.text : "";
  // An answer that was stopped has a last token that the model has not run.
  const auto run = static_cast<std::ptrdiff_t>(session_.length() - answer.kept - result.prompt_tokens);
  pending_.assign(result.ids.begin() + run, result.ids.end());
}

void Conversation::forget_state() {
  session_.reset();
  seen_.clear();
  pending_.clear();
}

std::size_t Conversation::first_turn() const {
  return !messages_.empty() && has_role(messages_.at(0), "system") ? 1 : 0;
}

}  // namespace sluice::cli
