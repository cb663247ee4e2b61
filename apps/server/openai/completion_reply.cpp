#include "server/openai/completion_reply.h"

#include <algorithm>
#include <ctime>
#include <numeric>

#include "server/openai/error.h"
#include "server/openai/logprobs.h"

namespace sluice::server::openai {

namespace {

class CompletionReply : public api::Reply {
 public:
  CompletionReply(const CompletionReplySettings& settings, const ServedModel& model)
      : settings_(settings),
        engine_(model.engine),
        model_(model.name),
        id_(api::new_id("cmpl-")),
        created_(std::time(nullptr)),
        choices_(settings.echoes.size()) {}

  std::string begin(std::int64_t) override {
    std::string events;
    for (std::size_t i = 0; i < choices_.size(); ++i)
      if (!settings_.echoes[i].empty()) events += chunk(i, settings_.echoes[i]);
    return events;
  }

  std::string tokens(std::size_t choice, std::span<const GeneratedToken> tokens) override {
    Choice& one = choices_[choice];
    std::string text;
    for (const GeneratedToken& token : tokens) {
      text += token.text;
      if (token.id >= 0) one.likelihood += token.logprob;
    }
    one.text += text;
    if (settings_.prompt_logprobs)
      one.told.insert(one.told.end(), tokens.begin(), tokens.end());  // after the prompt's
    else if (settings_.logprobs)
      one.logprobs.push(*engine_, tokens);
    return text.empty() && !settings_.logprobs ? "" : chunk(choice, text);
  }

  std::string done(std::size_t choice, const RequestResult& result) override {
    Choice& one = choices_[choice];
    one.reason = result.generated.reason == FinishReason::length ? "length" : "stop";
    one.usage.prompt = result.prompt.tokens;
    one.usage.cached = result.prompt.cached;
    one.usage.completion = std::ssize(result.generated.ids);
    one.prompt_logprobs = result.prompt_logprobs;
    return chunk(choice, "", one.reason);
  }

  std::string end() override {
    std::string events;
    if (settings_.common.usage_in_stream) {
      Json last = envelope();
      last["choices"] = Json::array();
      last["usage"] = usage_json(total());
      events = api::event(last);
    }
    return events + "data: [DONE]\n\n";
  }

  std::string failed(const ApiError& error) override {
    return api::event(error_body(error)) + "data: [DONE]\n\n";
  }

  Json body() override {
    Json whole = envelope();
    whole["choices"] = Json::array();
    for (const std::size_t i : told())
      whole["choices"].push_back({{"index", whole["choices"].size()},
                                  {"text", settings_.echoes[i] + choices_[i].text},
                                  {"logprobs", settings_.logprobs ? logprobs_of(i) : Json()},
                                  {"finish_reason", choices_[i].reason}});
    whole["usage"] = usage_json(total());
    return whole;
  }

 private:
  struct Choice {
    std::string text;
    CompletionLogprobs logprobs;
    std::vector<SampledToken> prompt_logprobs;
    std::vector<GeneratedToken> told;
    std::string reason;
    api::Usage usage;
    double likelihood = 0;  // sum of its tokens' log-probabilities

    double per_token() const { return likelihood / double(std::max<std::int64_t>(1, usage.completion)); }
  };

  // The choices to report: for each prompt those with the highest mean log-probability, best first if others
  // are left out.
  std::vector<std::size_t> told() const {
    std::vector<std::size_t> told;
    for (std::size_t first = 0; first < choices_.size(); first += per_prompt()) {
      std::vector<std::size_t> order(per_prompt());
      std::iota(order.begin(), order.end(), first);
      std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
        return choices_[a].per_token() > choices_[b].per_token();
      });
      order.resize(std::min(per_prompt(), settings_.told));
      if (per_prompt() == settings_.told) std::sort(order.begin(), order.end());
      told.insert(told.end(), order.begin(), order.end());
    }
    return told;
  }

  std::size_t per_prompt() const { return choices_.size() / settings_.prompts; }

  Json logprobs_of(std::size_t choice) const {
    if (!settings_.prompt_logprobs) return choices_[choice].logprobs.all();
    const std::size_t prompt = choice / per_prompt();
    CompletionLogprobs all;
    all.push_prompt(*engine_, settings_.first_ids[prompt], choices_[prompt * per_prompt()].prompt_logprobs);
    all.push(*engine_, choices_[choice].told);
    return all.all();
  }

  Json envelope() const {
    return {{"id", id_}, {"object", "text_completion"}, {"created", created_}, {"model", model_}};
  }

  std::string chunk(std::size_t choice, const std::string& text, const std::string& reason = {}) {
    Json json = envelope();
    json["choices"] =
        Json::array({{{"index", choice},
                      {"text", text},
                      {"logprobs", settings_.logprobs ? choices_[choice].logprobs.take() : Json()},
                      {"finish_reason", reason.empty() ? Json() : Json(reason)}}});
    if (settings_.common.usage_in_stream) json["usage"] = nullptr;
    return api::event(json);
  }

  // Each prompt counts once, whatever the number of its choices.
  api::Usage total() const {
    api::Usage sum;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      sum.completion += choices_[i].usage.completion;
      if (i % per_prompt() != 0) continue;
      sum.prompt += choices_[i].usage.prompt;
      sum.cached += choices_[i].usage.cached;
    }
    return sum;
  }

  CompletionReplySettings settings_;
  std::shared_ptr<Engine> engine_;
  std::string model_, id_;
  std::int64_t created_;
  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<api::Reply> make_completion_reply(const CompletionReplySettings& settings,
                                                  const ServedModel& model) {
  return std::make_unique<CompletionReply>(settings, model);
}

}  // namespace sluice::server::openai
