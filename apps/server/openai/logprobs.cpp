#include "server/openai/logprobs.h"

#include <cmath>
#include <utility>

namespace sluice::server::openai {

namespace {

// The protocol's number for what is as good as impossible.
double finite(double logprob) {
  return std::isfinite(logprob) ? logprob : -9999.0;
}

std::string token_text(const Engine& engine, std::int32_t id) {
  return engine.has_tokenizer() ? engine.decode(std::span(&id, 1), false) : std::to_string(id);
}

Json entry(const std::string& text, double logprob) {
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", text}, {"logprob", finite(logprob)}, {"bytes", bytes}};
}

}  // namespace

Json chat_logprobs(const Engine& engine, std::span<const GeneratedToken> tokens) {
  Json out = Json::array();
  for (const GeneratedToken& token : tokens) {
    if (token.id < 0) continue;
    Json json = entry(token_text(engine, token.id), token.logprob);
    json["top_logprobs"] = Json::array();
    for (const TokenLogprob& other : token.top)
      json["top_logprobs"].push_back(entry(token_text(engine, other.id), other.logprob));
    out.push_back(std::move(json));
  }
  return out;
}

Json CompletionLogprobs::empty() {
  return {{"tokens", Json::array()},
          {"token_logprobs", Json::array()},
          {"top_logprobs", Json::array()},
          {"text_offset", Json::array()}};
}

void CompletionLogprobs::push(const Engine& engine, std::span<const GeneratedToken> tokens) {
  for (const GeneratedToken& token : tokens) {
    if (token.id < 0) continue;
    const std::string text = token_text(engine, token.id);
    Json top = Json::object();
    for (const TokenLogprob& other : token.top) top[token_text(engine, other.id)] = finite(other.logprob);
    for (Json* json : {&all_, &fresh_}) {
      (*json)["tokens"].push_back(text);
      (*json)["token_logprobs"].push_back(finite(token.logprob));
      (*json)["top_logprobs"].push_back(top);
      (*json)["text_offset"].push_back(offset_);
    }
    offset_ += text.size();
  }
}

Json CompletionLogprobs::take() {
  return std::exchange(fresh_, empty());
}

}  // namespace sluice::server::openai
