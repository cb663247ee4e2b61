// What was said, and the tokens that stand for it.
#pragma once

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chat/responder.h"

namespace sluice::cli {

// What happens when the context is full: the oldest turns are forgotten, or the conversation ends.
enum class WhenFull { shift, stop };

struct Answer {
  GenerateResult result;
  std::int64_t kept = 0;      // tokens that did not have to run again
  std::size_t forgotten = 0;  // messages that had to go to make room
};

class Conversation {
 public:
  using Show = Responder::Show;

  Conversation(const Engine& engine, Responder& responder, WhenFull when_full);

  // Answers the message. One that fails is forgotten, and the conversation can go on without it.
  Answer ask(const std::string& message, const GenerateOptions& options, const Show& show);
  // Answers the last message again.
  Answer retry(const GenerateOptions& options, const Show& show);
  bool can_retry() const;
  // Takes the last message and its answer back; false where there is none.
  bool undo();
  // Forgets everything but what the system message says.
  void clear();
  // The system message; empty: none.
  void set_system(const std::string& text);
  std::string system() const;

  const nlohmann::ordered_json& messages() const { return messages_; }
  // Replaces the conversation. Throws where `messages` is no array of messages.
  void set_messages(nlohmann::ordered_json messages);

  std::int64_t context_used() const { return std::min(std::ssize(ids_), context_size()); }
  std::int64_t context_size() const { return responder_.capacity(); }

 private:
  std::string render() const;
  Answer answer(const GenerateOptions& options, const Show& show);
  // Forgets the oldest turns until the rest fits; how many messages went.
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
  std::string seen_;               // the text that they stand for; empty: none can be told
};

}  // namespace sluice::cli
