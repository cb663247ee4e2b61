#include "server/responses/response_reply.h"

#include <ctime>
#include <mutex>
#include <utility>

#include "server/openai/logprobs.h"
#include "server/responses/input.h"

namespace sluice::server::responses {

namespace {

class ResponseReply : public api::Reply {
 public:
  ResponseReply(ResponseSettings settings, const ServedModel& model)
      : settings_(std::move(settings)),
        engine_(model.engine),
        model_(model.name),
        id_(api::new_id("resp_")),
        created_(std::time(nullptr)),
        answer_(settings_.plan.format, settings_.plan.types) {}
  ~ResponseReply() override { settings_.store.end(settings_.client, id_); }

  void started(std::function<void()> cancel) override {
    settings_.store.begin(settings_.client, id_, {std::move(cancel), [this] {
                                                    const std::lock_guard lock(mutex_);
                                                    return stored();
                                                  }});
  }
  bool may_be_cancelled() const override { return true; }

  // Streaming clients learn the response's id before its turn comes.
  std::string accepted() override {
    const std::lock_guard lock(mutex_);
    std::string events = tell("response.created", {{"response", response()}});
    if (settings_.background) events += tell("response.queued", {{"response", response()}});
    return events;
  }

  std::string begin(std::int64_t) override {
    const std::lock_guard lock(mutex_);
    status_ = "in_progress";
    return tell("response.in_progress", {{"response", response()}});
  }

  std::string tokens(std::size_t, std::span<const GeneratedToken> tokens) override {
    const std::lock_guard lock(mutex_);
    if (settings_.logprobs)
      for (Json& one : openai::chat_logprobs(*engine_, tokens)) logprobs_.push_back(std::move(one));
    return changes(answer_.push(tokens));
  }

  std::string done(std::size_t, const RequestResult& result) override {
    std::unique_lock lock(mutex_);
    std::string events = changes(answer_.finish(result));
    events += close();
    const FinishReason reason = answer_.reason();
    status_ = reason == FinishReason::length      ? "incomplete"
              : reason == FinishReason::cancelled ? "cancelled"
                                                  : "completed";
    const char* name = reason == FinishReason::stop ? "response.completed" : "response.incomplete";
    events += tell(name, {{"response", response()}});
    add_answer();
    lock.unlock();  // the store calls for the response's current contents while it is locked
    if (settings_.keep) settings_.store.put(settings_.client, id_, stored());
    return events;
  }

  std::string end() override { return {}; }

  std::string failed(const ApiError& error) override {
    std::unique_lock lock(mutex_);
    status_ = "failed";
    error_ = {{"code", error.code.empty() ? "server_error" : error.code}, {"message", error.message}};
    std::string events = tell("response.failed", {{"response", response()}});
    lock.unlock();
    // Clients that come back for it find its result.
    if (settings_.background) settings_.store.put(settings_.client, id_, stored());
    return events;
  }

  Json body() override {
    const std::lock_guard lock(mutex_);
    return response();
  }

 private:
  using Kind = AnswerDelta::Kind;

  // Events are numbered, so they must be appended one by one, never in one expression.
  std::string tell(const char* type, const Json& data) {
    Json json{{"type", type}, {"sequence_number", sequence_++}};
    json.update(data);
    return api::event(json, type);
  }

  Json response() const {
    Json json{
        {"id", id_},
        {"object", "response"},
        {"created_at", created_},
        {"status", status_},
        {"background", settings_.background},
        {"error", error_},
        {"incomplete_details", status_ == "incomplete" ? Json{{"reason", "max_output_tokens"}} : Json()},
        {"model", model_},
        {"output", output_},
        {"store", settings_.keep}};
    if (const auto note = answer_.note()) json["note"] = *note;
    json.update(settings_.echo);
    const api::Usage& usage = answer_.usage();
    if (status_ != "in_progress" && status_ != "queued" && status_ != "failed")
      json["usage"] = {{"input_tokens", usage.prompt},
                       {"input_tokens_details", {{"cached_tokens", usage.cached}}},
                       {"output_tokens", usage.completion},
                       {"output_tokens_details", {{"reasoning_tokens", usage.reasoning}}},
                       {"total_tokens", usage.prompt + usage.completion}};
    else
      json["usage"] = nullptr;
    return json;
  }

  std::string changes(const std::vector<AnswerDelta>& deltas) {
    std::string events;
    for (const AnswerDelta& delta : deltas) {
      const Json logprobs = std::exchange(logprobs_, Json::array());
      if (delta.kind == Kind::call) {
        events += close();
        events += call(delta);
        continue;
      }
      if (!open_ || *open_ != delta.kind) {
        events += close();
        events += open(delta.kind);
      }
      output_.back()["content"][0]["text"].get_ref<std::string&>() += delta.text;
      Json data = place();
      data["delta"] = delta.text;
      if (delta.kind == Kind::content) {
        data["logprobs"] = logprobs;
        for (const Json& one : logprobs) output_.back()["content"][0]["logprobs"].push_back(one);
      }
      events += tell(
          delta.kind == Kind::content ? "response.output_text.delta" : "response.reasoning_text.delta", data);
    }
    return events;
  }

  Json place() const {
    return {{"item_id", output_.back()["id"]}, {"output_index", output_.size() - 1}, {"content_index", 0}};
  }

  std::string item_event(const char* type) {
    return tell(type, {{"output_index", output_.size() - 1}, {"item", output_.back()}});
  }

  std::string part_event(const char* type) {
    Json data = place();
    data["part"] = output_.back()["content"][0];
    return tell(type, data);
  }

  std::string open(Kind kind) {
    open_ = kind;
    if (kind == Kind::content)
      output_.push_back({{"type", "message"},
                         {"id", api::new_id("msg_")},
                         {"status", "in_progress"},
                         {"role", "assistant"},
                         {"content", Json::array()}});
    else
      output_.push_back({{"type", "reasoning"},
                         {"id", api::new_id("rs_")},
                         {"status", "in_progress"},
                         {"summary", Json::array()},
                         {"content", Json::array()}});
    std::string events = item_event("response.output_item.added");
    Json part{{"type", kind == Kind::content ? "output_text" : "reasoning_text"}, {"text", ""}};
    if (kind == Kind::content) part["annotations"] = part["logprobs"] = Json::array();
    output_.back()["content"].push_back(part);
    return events + part_event("response.content_part.added");
  }

  std::string close() {
    if (!open_) return {};
    const Kind kind = *open_;
    open_.reset();
    Json data = place();
    data["text"] = output_.back()["content"][0]["text"];
    if (kind == Kind::content) data["logprobs"] = output_.back()["content"][0]["logprobs"];
    output_.back()["status"] = "completed";
    std::string events =
        tell(kind == Kind::content ? "response.output_text.done" : "response.reasoning_text.done", data);
    events += part_event("response.content_part.done");
    return events += item_event("response.output_item.done");
  }

  std::string call(const AnswerDelta& delta) {
    output_.push_back({{"type", "function_call"},
                       {"id", api::new_id("fc_")},
                       {"call_id", api::new_id("call_")},
                       {"name", delta.function},
                       {"arguments", ""},
                       {"status", "in_progress"}});
    if (const auto member = settings_.members.find(delta.function); member != settings_.members.end()) {
      output_.back()["namespace"] = member->second.name_space;
      output_.back()["name"] = member->second.name;
    }
    std::string events = item_event("response.output_item.added");
    output_.back()["arguments"] = delta.text;
    output_.back()["status"] = "completed";
    Json data{{"item_id", output_.back()["id"]}, {"output_index", output_.size() - 1}};
    data["delta"] = delta.text;
    events += tell("response.function_call_arguments.delta", data);
    data.erase("delta");
    data["name"] = output_.back()["name"];
    data["arguments"] = delta.text;
    events += tell("response.function_call_arguments.done", data);
    return events += item_event("response.output_item.done");
  }

  Stored stored() const { return {response(), settings_.input, settings_.messages, settings_.recording}; }

  // Adds the answer to the conversation that a later response continues.
  void add_answer() {
    if (!settings_.keep) return;
    Json message{{"role", "assistant"}, {"content", answer_.content()}};
    if (!answer_.thinking().empty()) message["reasoning_content"] = answer_.thinking();
    for (const Json& item : output_) {
      if (item["type"] != "function_call") continue;
      const Json arguments = parse_or_null(item["arguments"].get<std::string>());
      message["tool_calls"].push_back(
          {{"id", item["call_id"]},
           {"type", "function"},
           {"function",
            {{"name", name_in(item.value("namespace", Json()), item["name"])},
             {"arguments", arguments.is_object() ? arguments : item["arguments"]}}}});
    }
    settings_.messages.push_back(std::move(message));
  }

  std::mutex mutex_;  // others may read a response that is being generated
  ResponseSettings settings_;
  std::shared_ptr<const Engine> engine_;
  std::string model_, id_;
  std::int64_t created_;
  api::Answer answer_;
  Json output_ = Json::array();
  Json logprobs_ = Json::array();  // of tokens not reported yet
  std::optional<Kind> open_;
  std::string status_ = settings_.background ? "queued" : "in_progress";
  Json error_;
  std::int64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<api::Reply> make_response_reply(ResponseSettings settings, const ServedModel& model) {
  return std::make_unique<ResponseReply>(std::move(settings), model);
}

}  // namespace sluice::server::responses
