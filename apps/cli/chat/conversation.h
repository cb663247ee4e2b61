// A conversation: its messages and their tokens.
#pragma once

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chat/responder.h"

namespace sluice::cli::chat {

// What happens when the context is full: the oldest turns are dropped, or the conversation ends.
enum class WhenFull { shift, stop };

struct Answer {
  GenerateResult result;
  std::int64_t kept = 0;      // tokens that were not computed again
  std::size_t forgotten = 0;  // messages dropped to make room
};

class Conversation {
 public:
  using Show = Responder::Show;

  Conversation(const Engine& engine, Responder& responder, WhenFull when_full);

  // Answers the message. If that fails, the message is dropped and the conversation can continue.
  Answer ask(const std::string& message, const GenerateOptions& options, const Show& show);
  // Answers the last message again.
  Answer retry(const GenerateOptions& options, const Show& show);
  bool can_retry() const;
  // Removes the last message and its answer; false if there is none.
  bool undo();
  // Drops everything but the system message.
  void clear();
  // The system message; empty: none.
  void set_system(const std::string& text);
  std::string system() const;

  const nlohmann::ordered_json& messages() const { return messages_; }
  // Replaces the conversation. Throws if `messages` is not an array of messages.
  void set_messages(nlohmann::ordered_json messages);

  std::int64_t context_used() const { return std::min(std::ssize(ids_), context_size()); }
  std::int64_t context_size() const { return responder_.capacity(); }

 private:
  std::string render() const;
  Answer answer(const GenerateOptions& options, const Show& show);
  // Drops the oldest turns until the rest fits; returns the number of dropped messages.
  std::size_t make_room(std::int64_t max_tokens);
  bool forget_oldest_turn();
  std::vector<std::int32_t> encode(const std::string& rendered) const;
  void remember(const std::string& rendered, const GenerateResult& answer);
  std::size_t first_turn() const;

  const Engine& engine_;
  Responder& responder_;
  WhenFull when_full_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
  std::vector<std::int32_t> ids_;  // of the last prompt and its answer
  std::string seen_;               // the text of those ids; empty: unknown
};

}  // namespace sluice::cli::chat
