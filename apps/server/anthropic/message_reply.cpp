#include "server/anthropic/message_reply.h"

#include "server/anthropic/error.h"

namespace sluice::server::anthropic {

namespace {

class MessageReply : public api::Reply {
 public:
  MessageReply(const MessageReplySettings& settings, const ServedModel& model)
      : settings_(settings),
        engine_(model.engine),
        model_(model.name),
        id_(api::new_id("msg_")),
        answer_(settings.plan.format, settings.plan.types) {}

  std::string begin(std::int64_t cached) override {
    cached_ = cached;
    Json message = envelope();
    message["content"] = Json::array();
    message["usage"] = usage();
    return api::event({{"type", "message_start"}, {"message", message}}, "message_start");
  }

  std::string tokens(std::size_t, std::span<const GeneratedToken> tokens) override {
    return changes(answer_.push(tokens));
  }

  std::string done(std::size_t, const RequestResult& result) override {
    std::string events = changes(answer_.finish(result));
    cached_ = result.prompt.cached;
    created_ = std::max<std::int64_t>(0, result.prompt.marked - cached_);
    find_stop(result.generated);
    events += close_block();
    Json delta{{"stop_reason", reason_}, {"stop_sequence", stop_}};
    if (const auto note = answer_.note()) delta["note"] = *note;
    events += api::event({{"type", "message_delta"}, {"delta", delta}, {"usage", usage()}}, "message_delta");
    return events;
  }

  std::string end() override { return api::event({{"type", "message_stop"}}, "message_stop"); }

  std::string failed(const ApiError& error) override { return api::event(error_body(error), "error"); }

  Json body() override {
    Json message = envelope();
    message["content"] = blocks_;
    message["stop_reason"] = reason_;
    message["stop_sequence"] = stop_;
    if (const auto note = answer_.note()) message["note"] = *note;
    message["usage"] = usage();
    return message;
  }

 private:
  Json envelope() const {
    return {{"id", id_},       {"type", "message"},      {"role", "assistant"},
            {"model", model_}, {"stop_reason", nullptr}, {"stop_sequence", nullptr}};
  }

  Json usage() const {
    return {{"input_tokens", settings_.prompt_tokens - cached_ - created_},
            {"cache_creation_input_tokens", created_},
            {"cache_read_input_tokens", cached_},
            {"cache_creation", {{"ephemeral_5m_input_tokens", created_}, {"ephemeral_1h_input_tokens", 0}}},
            {"output_tokens", answer_.usage().completion},
            {"output_tokens_details", {{"thinking_tokens", answer_.usage().reasoning}}}};
  }

  std::string changes(const std::vector<AnswerDelta>& deltas) {
    std::string events;
    for (const AnswerDelta& delta : deltas) {
      if (delta.kind == AnswerDelta::Kind::call)
        events += call(delta);
      else
        events += text(delta);
    }
    return events;
  }

  std::string text(const AnswerDelta& delta) {
    const char* kind = delta.kind == AnswerDelta::Kind::thinking ? "thinking" : "text";
    std::string events;
    if (!open_ || blocks_.back()["type"] != kind) {
      Json block{{"type", kind}, {kind, ""}};
      if (delta.kind == AnswerDelta::Kind::thinking) block["signature"] = "";
      events = close_block();
      events += open_block(block);
    }
    blocks_.back()[kind].get_ref<std::string&>() += delta.text;
    return events + block_delta({{"type", std::string(kind) + "_delta"}, {kind, delta.text}});
  }

  std::string call(const AnswerDelta& delta) {
    std::string events = close_block();
    events += open_block({{"type", "tool_use"},
                          {"id", api::new_id("toolu_")},
                          {"name", delta.function},
                          {"input", Json::object()}});
    const Json input = parse_or_null(delta.text);
    blocks_.back()["input"] = input.is_object() ? input : Json::object();
    events += block_delta({{"type", "input_json_delta"}, {"partial_json", delta.text}});
    return events + close_block();
  }

  std::string open_block(const Json& block) {
    open_ = true;
    blocks_.push_back(block);
    return api::event(
        {{"type", "content_block_start"}, {"index", blocks_.size() - 1}, {"content_block", block}},
        "content_block_start");
  }

  std::string close_block() {
    if (!open_) return {};
    open_ = false;
    std::string events;
    // Clients send thinking back only with a signature; this server does not check it.
    if (blocks_.back()["type"] == "thinking") {
      blocks_.back()["signature"] = id_;
      events = block_delta({{"type", "signature_delta"}, {"signature", id_}});
    }
    return events +
           api::event({{"type", "content_block_stop"}, {"index", blocks_.size() - 1}}, "content_block_stop");
  }

  std::string block_delta(const Json& delta) const {
    return api::event({{"type", "content_block_delta"}, {"index", blocks_.size() - 1}, {"delta", delta}},
                      "content_block_delta");
  }

  // The text that stopped the answer is in its tokens after the text that was sent.
  void find_stop(const GenerateResult& result) {
    const bool cut = result.reason == FinishReason::length;
    reason_ = cut && std::ssize(result.ids) < settings_.most_tokens ? "model_context_window_exceeded"
              : cut                                                 ? "max_tokens"
              : answer_.calls().empty()                             ? "end_turn"
                                                                    : "tool_use";
    if (result.reason != FinishReason::stop || !engine_->has_tokenizer()) return;
    const std::string all = engine_->decode(result.ids);
    if (!all.starts_with(result.text)) return;
    for (const std::string& stop : settings_.stops) {
      if (!std::string_view(all).substr(result.text.size()).starts_with(stop)) continue;
      reason_ = "stop_sequence";
      stop_ = stop;
      return;
    }
  }

  MessageReplySettings settings_;
  std::shared_ptr<Engine> engine_;
  std::string model_, id_;
  api::Answer answer_;
  Json blocks_ = Json::array();
  bool open_ = false;
  std::int64_t cached_ = 0;
  std::int64_t created_ = 0;  // tokens newly cached, up to the request's last mark
  Json reason_, stop_;
};

}  // namespace

std::unique_ptr<api::Reply> make_message_reply(const MessageReplySettings& settings,
                                               const ServedModel& model) {
  return std::make_unique<MessageReply>(settings, model);
}

}  // namespace sluice::server::anthropic
