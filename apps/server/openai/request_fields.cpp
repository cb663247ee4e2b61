#include "server/openai/request_fields.h"

#include "server/api_error.h"

namespace sluice::server::openai {

namespace {

constexpr std::int64_t kMostChoices = 16;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;

}  // namespace

Common read_common(api::Fields& fields, const ServedModel& model) {
  Common common;
  if (const auto name = fields.text("model")) model.check_name(*name);
  common.stream = fields.flag("stream").value_or(false);
  if (const Json* options = fields.object("stream_options")) {
    if (!common.stream)
      throw bad_request("'stream_options' is only allowed when 'stream' is true.", "stream_options");
    api::Fields inner(*options);
    common.usage_in_stream = inner.flag("include_usage").value_or(false);
    inner.ignore({"include_obfuscation", "continuous_usage_stats"});
    inner.refuse_others();
  }
  return common;
}

std::optional<std::int64_t> read_max_tokens(api::Fields& fields, std::initializer_list<const char*> names) {
  std::optional<std::int64_t> most;
  for (const char* name : names) {
    const auto value = fields.integer(name, -1, kMostTokens);
    if (value && *value != -1 && !most) most = value;
  }
  return most;
}

std::int64_t read_choice_count(api::Fields& fields) {
  return fields.integer("n", 1, kMostChoices).value_or(1);
}

void ignore_what_has_no_effect(api::Fields& fields) {
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier"});
  // Parameters of other local servers that do not affect tokens here.
  fields.ignore({"cache_prompt", "id_slot", "timings_per_token", "return_progress",
                 "spaces_between_special_tokens", "request_id"});
}

Json usage_json(const api::Usage& usage) {
  return {{"prompt_tokens", usage.prompt},
          {"completion_tokens", usage.completion},
          {"total_tokens", usage.prompt + usage.completion},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached}, {"audio_tokens", 0}}},
          {"completion_tokens_details",
           {{"reasoning_tokens", usage.reasoning},
            {"audio_tokens", 0},
            {"accepted_prediction_tokens", 0},
            {"rejected_prediction_tokens", 0}}}};
}

api::Usage total(const std::vector<api::Answer>& answers) {
  api::Usage sum;
  for (const api::Answer& answer : answers) {
    sum.prompt = std::max(sum.prompt, answer.usage().prompt);
    sum.cached = std::max(sum.cached, answer.usage().cached);
    sum.completion += answer.usage().completion;
    sum.reasoning += answer.usage().reasoning;
  }
  return sum;
}

}  // namespace sluice::server::openai
