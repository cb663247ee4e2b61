#include "server/openai/logprobs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sluice/token_bytes.h"

namespace sluice::server::openai {

namespace {

// The protocol's number for an impossible token.
double finite(double logprob) {
  return std::isfinite(logprob) ? logprob : -9999.0;
}

struct TokenText {
  std::string text;   // with replacements if the token is a part of a character
  std::string bytes;  // unchanged
};

TokenText text_of(const Engine& engine, std::int32_t id) {
  if (!engine.has_tokenizer()) return {std::to_string(id), std::to_string(id)};
  return {engine.decode(std::span(&id, 1), false), token_bytes(engine, id)};
}

// Completions have no field for bytes, so bytes that are not text are escaped as in OpenAI's.
std::string name_of(const Engine& engine, std::int32_t id) {
  TokenText token = text_of(engine, id);
  if (token.text == token.bytes) return std::move(token.text);
  std::string name = "bytes:";
  for (const char c : token.bytes) name += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return name;
}

Json names_of(const Engine& engine, std::span<const TokenLogprob> tokens) {
  Json names = Json::object();
  for (const TokenLogprob& one : tokens) names[name_of(engine, one.id)] = finite(one.logprob);
  return names;
}

// The number of characters that begin in it.
std::size_t characters(std::string_view text) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins));
}

Json entry(const TokenText& token, double logprob) {
  Json bytes = Json::array();
  for (const char c : token.bytes) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", token.text}, {"logprob", finite(logprob)}, {"bytes", bytes}};
}

}  // namespace

Json chat_logprobs(const Engine& engine, std::span<const GeneratedToken> tokens) {
  Json out = Json::array();
  for (const GeneratedToken& token : tokens) {
    if (token.id < 0) continue;
    Json json = entry(text_of(engine, token.id), token.logprob);
    json["top_logprobs"] = Json::array();
    for (const TokenLogprob& other : token.top)
      json["top_logprobs"].push_back(entry(text_of(engine, other.id), other.logprob));
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

void CompletionLogprobs::push(const Engine& engine, std::int32_t id, const Json& logprob, const Json& top) {
  const std::string name = name_of(engine, id);
  for (Json* json : {&all_, &fresh_}) {
    (*json)["tokens"].push_back(name);
    (*json)["token_logprobs"].push_back(logprob);
    (*json)["top_logprobs"].push_back(top);
    (*json)["text_offset"].push_back(offset_);
  }
  offset_ += characters(text_of(engine, id).bytes);
}

void CompletionLogprobs::push(const Engine& engine, std::span<const GeneratedToken> tokens) {
  for (const GeneratedToken& token : tokens)
    if (token.id >= 0) push(engine, token.id, finite(token.logprob), names_of(engine, token.top));
}

void CompletionLogprobs::push_prompt(const Engine& engine, std::int32_t first,
                                     std::span<const SampledToken> others) {
  push(engine, first, Json(), Json());
  for (const SampledToken& token : others)
    push(engine, token.id, finite(token.logprob), names_of(engine, token.top));
}

Json CompletionLogprobs::take() {
  return std::exchange(fresh_, empty());
}

}  // namespace sluice::server::openai
