#include "server/api/answer.h"

#include <random>
#include <utility>

namespace sluice::server::api {

namespace {

std::vector<AnswerDelta> joined(std::vector<AnswerDelta> deltas) {
  std::vector<AnswerDelta> out;
  for (AnswerDelta& delta : deltas) {
    const bool joins = !out.empty() && out.back().kind == delta.kind && delta.kind != AnswerDelta::Kind::call;
    if (joins) {
      out.back().text += delta.text;
      out.back().malformed_call |= delta.malformed_call;
    } else {
      out.push_back(std::move(delta));
    }
  }
  return out;
}

}  // namespace

Answer::Answer(const AnswerFormat& format, AnswerParser::ParameterTypes types)
    : parser_(format, std::move(types)), in_thinking_(format.prompt_opens_thinking) {}

std::vector<AnswerDelta> Answer::push(std::span<const GeneratedToken> tokens) {
  std::vector<AnswerDelta> all;
  for (const GeneratedToken& token : tokens) {
    std::vector<AnswerDelta> deltas = parser_.push(token.text);
    // A token counts as what it begins with; one whose text is held back has the kind of the text before it.
    const bool thinks = deltas.empty() ? in_thinking_ : deltas.front().kind == AnswerDelta::Kind::thinking;
    if (!deltas.empty()) in_thinking_ = deltas.back().kind == AnswerDelta::Kind::thinking;
    if (token.id >= 0) {
      ++usage_.completion;
      if (thinks) ++usage_.reasoning;
    }
    for (AnswerDelta& delta : deltas) all.push_back(std::move(delta));
  }
  return keep(std::move(all));
}

std::vector<AnswerDelta> Answer::finish(const RequestResult& result) {
  reason_ = result.generated.reason;
  usage_.prompt = result.prompt.tokens;
  usage_.cached = result.prompt.cached;
  usage_.completion = std::ssize(result.generated.ids);
  return keep(parser_.finish());
}

std::vector<AnswerDelta> Answer::keep(std::vector<AnswerDelta> deltas) {
  std::vector<AnswerDelta> out = joined(std::move(deltas));
  for (const AnswerDelta& delta : out) {
    malformed_call_ |= delta.malformed_call;
    switch (delta.kind) {
      case AnswerDelta::Kind::thinking:
        thinking_ += delta.text;
        break;
      case AnswerDelta::Kind::content:
        content_ += delta.text;
        break;
      case AnswerDelta::Kind::call:
        calls_.push_back({new_id("call_"), delta.function, delta.text});
        break;
    }
  }
  return out;
}

std::string new_id(std::string_view prefix) {
  static constexpr std::string_view kLetters =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::random_device device;
  std::uniform_int_distribution<std::size_t> letter(0, kLetters.size() - 1);
  std::string id(prefix);
  for (int i = 0; i < 24; ++i) id += kLetters[letter(device)];
  return id;
}

}  // namespace sluice::server::api
