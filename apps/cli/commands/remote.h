// Answers from a running server instead of a local model.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "options/generation.h"

namespace sluice::cli::commands {

struct RemoteOptions {
  std::string url;  // empty: none
  std::string key;

  void add(Command& command);
};

// Prints the answer as it arrives and returns it; Ctrl-C stops it. `messages` are those of a chat.
std::string ask_remote(const RemoteOptions& remote, const options::Generation& generation,
                       const nlohmann::ordered_json& messages);
// The same for a text to continue.
std::string continue_remote(const RemoteOptions& remote, const options::Generation& generation,
                            const std::string& text);
// A conversation, until the input ends.
void chat_remote(const RemoteOptions& remote, const options::Generation& generation,
                 const std::string& system);

}  // namespace sluice::cli::commands
