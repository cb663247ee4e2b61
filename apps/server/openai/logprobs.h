// Log-probabilities of tokens in the two formats of OpenAI's protocol.
#pragma once

#include <span>

#include "server/json.h"
#include "sluice/session.h"

namespace sluice::server::openai {

// An array with an object per token.
Json chat_logprobs(const Engine& engine, std::span<const GeneratedToken> tokens);

// Four arrays with an entry per token.
class CompletionLogprobs {
 public:
  void push(const Engine& engine, std::span<const GeneratedToken> tokens);
  // A prompt's tokens; the first one has no log-probability.
  void push_prompt(const Engine& engine, std::int32_t first, std::span<const SampledToken> others);
  // What was added since the last call.
  Json take();
  const Json& all() const { return all_; }

 private:
  static Json empty();
  void push(const Engine& engine, std::int32_t id, const Json& logprob, const Json& top);

  Json all_ = empty(), fresh_ = empty();
  std::size_t offset_ = 0;
};

}  // namespace sluice::server::openai
