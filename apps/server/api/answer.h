// One choice of an answer in progress: thinking, content and calls.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/answer.h"
#include "sluice/scheduler.h"

namespace sluice::server::api {

struct ToolCall {
  std::string id;
  std::string function;
  std::string arguments;  // JSON
};

struct Usage {
  std::int64_t prompt = 0;
  std::int64_t cached = 0;  // of the prompt
  std::int64_t completion = 0;
  std::int64_t reasoning = 0;  // of the completion
};

class Answer {
 public:
  explicit Answer(const AnswerFormat& format, AnswerParser::ParameterTypes types = {});

  // What the tokens add; adjacent parts of one kind are joined.
  std::vector<AnswerDelta> push(std::span<const GeneratedToken> tokens);
  // What was held back until the end.
  std::vector<AnswerDelta> finish(const RequestResult& result);

  const std::string& thinking() const { return thinking_; }
  const std::string& content() const { return content_; }
  const std::vector<ToolCall>& calls() const { return calls_; }
  const Usage& usage() const { return usage_; }
  FinishReason reason() const { return reason_; }
  // A note for programs that would take a missing call for an answer without one.
  std::optional<std::string> note() const {
    if (!malformed_call_) return std::nullopt;
    return "The answer contains a tool call that cannot be parsed. It is returned as text.";
  }

 private:
  std::vector<AnswerDelta> keep(std::vector<AnswerDelta> deltas);

  AnswerParser parser_;
  std::string thinking_, content_;
  std::vector<ToolCall> calls_;
  Usage usage_;
  bool in_thinking_ = false, malformed_call_ = false;
  FinishReason reason_ = FinishReason::length;
};

// A unique name: the prefix and 24 random characters.
std::string new_id(std::string_view prefix);

}  // namespace sluice::server::api
