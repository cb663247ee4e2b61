#include "server/openai/chat_reply.h"

#include <ctime>

#include "server/openai/error.h"
#include "server/openai/logprobs.h"

namespace sluice::server::openai {

namespace {

class ChatReply : public api::Reply {
 public:
  ChatReply(const ChatReplySettings& settings, const ServedModel& model, std::size_t choices)
      : settings_(settings),
        engine_(model.engine),
        model_(model.name),
        id_(api::new_id("chatcmpl-")),
        created_(std::time(nullptr)),
        logprobs_(choices, Json::array()) {
    for (std::size_t i = 0; i < choices; ++i)
      answers_.emplace_back(settings.plan.format, settings.plan.types);
  }

  std::string begin(std::int64_t) override {
    std::string events;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      Json delta{{"role", "assistant"}, {"content", ""}};
      if (thinks()) delta["reasoning_content"] = nullptr;
      events += chunk(i, delta);
    }
    return events;
  }

  std::string tokens(std::size_t choice, std::span<const GeneratedToken> tokens) override {
    Json logprobs = settings_.logprobs ? chat_logprobs(*engine_, tokens) : Json();
    for (const Json& one : logprobs) logprobs_[choice].push_back(one);
    return changes(choice, answers_[choice].push(tokens), logprobs);
  }

  std::string done(std::size_t choice, const RequestResult& result) override {
    api::Answer& answer = answers_[choice];
    std::string events = changes(choice, answer.finish(result), Json());
    events += chunk(choice, delta({}, {}), finish_reason(answer), {}, answer.note());
    return events;
  }

  std::string end() override {
    std::string events;
    if (settings_.common.usage_in_stream) {
      Json last = envelope("chat.completion.chunk");
      last["choices"] = Json::array();
      last["usage"] = usage_json(total(answers_));
      events = api::event(last);
    }
    return events + "data: [DONE]\n\n";
  }

  std::string failed(const ApiError& error) override {
    return api::event(error_body(error)) + "data: [DONE]\n\n";
  }

  Json body() override {
    Json whole = envelope("chat.completion");
    whole["choices"] = Json::array();
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      whole["choices"].push_back({{"index", i},
                                  {"message", message(answers_[i])},
                                  {"logprobs", logprobs_json(logprobs_[i])},
                                  {"finish_reason", finish_reason(answers_[i])}});
      if (const auto note = answers_[i].note()) whole["choices"].back()["note"] = *note;
    }
    whole["usage"] = usage_json(total(answers_));
    return whole;
  }

 private:
  bool thinks() const { return !settings_.plan.format.think_open.empty(); }

  static std::string finish_reason(const api::Answer& answer) {
    if (answer.reason() == FinishReason::length) return "length";
    return answer.calls().empty() ? "stop" : "tool_calls";
  }

  Json envelope(const char* object) const {
    return {{"id", id_},
            {"object", object},
            {"created", created_},
            {"model", model_},
            {"system_fingerprint", nullptr}};
  }

  Json logprobs_json(const Json& content) const {
    return settings_.logprobs ? Json{{"content", content}, {"refusal", nullptr}} : Json();
  }

  std::string chunk(std::size_t choice, const Json& delta, const std::string& reason = {},
                    const Json& logprobs = {}, const std::optional<std::string>& note = {}) const {
    Json json = envelope("chat.completion.chunk");
    json["choices"] = Json::array({{{"index", choice},
                                    {"delta", delta},
                                    {"logprobs", logprobs.is_null() ? Json() : logprobs_json(logprobs)},
                                    {"finish_reason", reason.empty() ? Json() : Json(reason)}}});
    if (note) json["choices"][0]["note"] = *note;
    if (settings_.common.usage_in_stream) json["usage"] = nullptr;
    return api::event(json);
  }

  // Clients break on a field that only some deltas have, so models that think have it in all of them.
  Json delta(const std::string& content, const std::string& thinking) const {
    Json json = Json::object();
    if (!content.empty() || thinks()) json["content"] = content.empty() ? Json() : Json(content);
    if (thinks()) json["reasoning_content"] = thinking.empty() ? Json() : Json(thinking);
    return json;
  }

  std::string changes(std::size_t choice, const std::vector<AnswerDelta>& deltas, Json logprobs) {
    std::string events;
    std::size_t calls = answers_[choice].calls().size();
    for (const AnswerDelta& one : deltas) calls -= one.kind == AnswerDelta::Kind::call ? 1 : 0;
    for (const AnswerDelta& one : deltas) {
      Json json;
      if (one.kind == AnswerDelta::Kind::call) {
        json = delta({}, {});
        json["tool_calls"] = Json::array({call_json(answers_[choice].calls()[calls], calls, true)});
        ++calls;
      } else {
        const bool content = one.kind == AnswerDelta::Kind::content;
        json = delta(content ? one.text : "", content ? "" : one.text);
      }
      events += chunk(choice, json, {}, logprobs);
      logprobs = nullptr;
    }
    // Tokens whose text is held back still have their log-probabilities.
    if (deltas.empty() && !logprobs.is_null()) events = chunk(choice, delta({}, {}), {}, logprobs);
    return events;
  }

  static Json call_json(const api::ToolCall& call, std::size_t index, bool indexed) {
    Json json = Json::object();
    if (indexed) json["index"] = index;
    json["id"] = call.id;
    json["type"] = "function";
    json["function"] = {{"name", call.function}, {"arguments", call.arguments}};
    return json;
  }

  Json message(const api::Answer& answer) const {
    Json json{{"role", "assistant"}};
    const bool only_calls = answer.content().empty() && !answer.calls().empty();
    json["content"] = only_calls ? Json() : Json(answer.content());
    json["refusal"] = nullptr;
    if (thinks()) json["reasoning_content"] = answer.thinking().empty() ? Json() : Json(answer.thinking());
    for (std::size_t i = 0; i < answer.calls().size(); ++i)
      json["tool_calls"].push_back(call_json(answer.calls()[i], i, false));
    return json;
  }

  ChatReplySettings settings_;
  std::shared_ptr<Engine> engine_;
  std::string model_, id_;
  std::int64_t created_;
  std::vector<api::Answer> answers_;
  std::vector<Json> logprobs_;
};

}  // namespace

std::unique_ptr<api::Reply> make_chat_reply(const ChatReplySettings& settings, const ServedModel& model,
                                            std::size_t choices) {
  return std::make_unique<ChatReply>(settings, model, choices);
}

}  // namespace sluice::server::openai
