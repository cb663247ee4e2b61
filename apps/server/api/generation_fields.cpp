#include "server/api/generation_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <random>

#include "server/api_error.h"

namespace sluice::server::api {

namespace {

constexpr std::size_t kMostStops = 16;
constexpr std::int64_t kMostBias = 1024;
constexpr double kLeastTopP = 1e-9;  // the protocols allow 0, which leaves only the most likely token

void read_logit_bias(Fields& fields, const ServedModel& model, SamplingSettings& sampling) {
  const Json* biases = fields.object("logit_bias");
  if (biases == nullptr) return;
  if (biases->size() > kMostBias)
    throw bad_request(fmt::format("Invalid 'logit_bias': at most {} tokens are allowed.", kMostBias),
                      "logit_bias");
  const std::int64_t vocab = model.engine->summary().vocab;
  for (const auto& [key, value] : biases->items()) {
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool whole = error == std::errc() && end == key.data() + key.size();
    if (!whole || id < 0 || id >= vocab)
      throw bad_request(fmt::format("Invalid 'logit_bias': '{}' is not a token of this model.", key),
                        "logit_bias");
    if (!value.is_number() || !(value.get<double>() >= -100 && value.get<double>() <= 100))
      throw bad_request("Invalid 'logit_bias': a bias is a number between -100 and 100.", "logit_bias");
    sampling.logit_bias.emplace_back(id, value.get<double>());
  }
}

void read_sampling(Fields& fields, SamplingSettings& sampling) {
  if (const auto value = fields.number("temperature", 0, 2)) sampling.temperature = *value;
  if (const auto value = fields.number("top_p", 0, 1)) sampling.top_p = std::max(*value, kLeastTopP);
  if (const auto value = fields.integer("top_k", -1, 1 << 30)) sampling.top_k = std::max(int(*value), 0);
  if (const auto value = fields.number("min_p", 0, 1)) sampling.min_p = *value;
  if (const auto value = fields.number("repetition_penalty", 0.01, 100)) sampling.repetition_penalty = *value;
  if (const auto value = fields.number("presence_penalty", -2, 2)) sampling.presence_penalty = *value;
  if (const auto value = fields.number("frequency_penalty", -2, 2)) sampling.frequency_penalty = *value;
  const auto seed = fields.integer("seed");
  sampling.seed = seed ? static_cast<std::uint64_t>(*seed) : std::random_device()();
}

}  // namespace

Generation read_generation(Fields& fields, const ServedModel& model) {
  Generation generation;
  Request& request = generation.request;
  request.options.sampling = model.sampling;
  read_sampling(fields, request.options.sampling);
  read_logit_bias(fields, model, request.options.sampling);
  request.options.stop = fields.texts("stop", kMostStops);
  std::erase(request.options.stop, "");
  request.options.ignore_stop_ids = fields.flag("ignore_eos").value_or(false);
  request.options.min_tokens = fields.integer("min_tokens", 0, 1 << 30).value_or(0);
  request.cache_salt = fields.text("cache_salt").value_or("");
  request.cache_key = fields.text("prompt_cache_key").value_or("");
  request.priority = fields.integer("priority", -1000, 1000).value_or(0);
  return generation;
}

std::int64_t most_prompt_tokens(const ServedModel& model) {
  return model.prompt_limit > 0 ? std::min(model.prompt_limit, model.context - 1) : model.context - 1;
}

void set_prompt(Request& request, std::vector<std::int32_t> ids, std::optional<std::int64_t> asked,
                const ServedModel& model, const std::string& param) {
  const auto tokens = std::ssize(ids);
  if (tokens == 0) throw bad_request("The prompt is empty.", param);
  const std::int64_t limit = most_prompt_tokens(model);
  if (tokens > limit)
    throw context_exceeded(
        fmt::format("This model's maximum context length is {} tokens, of which a prompt may have {}. "
                    "However, your prompt has {} tokens. Please reduce its length.",
                    model.context, limit, tokens),
        param);
  request.prompt = std::move(ids);
  request.options.max_tokens = std::min(asked.value_or(model.context), model.context - tokens);
}

std::vector<Request> Generation::choices(std::int64_t count, const AnswerRequest& answer,
                                         const ServedModel& model, AnswerPlan& plan) const {
  std::vector<Request> all(static_cast<std::size_t>(count), request);
  for (std::size_t i = 0; i < all.size(); ++i) {
    plan = plan_answer(*model.engine, answer);
    all[i].options.sampling.seed += i;
    all[i].options.skip_special = !plan.shows_special;
    all[i].options.guide = plan.guide;
  }
  return all;
}

}  // namespace sluice::server::api
