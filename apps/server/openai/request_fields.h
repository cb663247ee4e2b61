// The fields that chat completions and completions share.
#pragma once

#include <initializer_list>

#include "server/api/answer.h"
#include "server/api/fields.h"
#include "server/served_model.h"

namespace sluice::server::openai {

constexpr std::int64_t kMostAlternatives = 20;  // maximum of log-probabilities per token

struct Common {
  bool stream = false;
  bool usage_in_stream = false;  // stream_options.include_usage
};

// Also checks the model's name.
Common read_common(api::Fields& fields, const ServedModel& model);
// From the first of the names that is present; -1 means as many as fit.
std::optional<std::int64_t> read_max_tokens(api::Fields& fields, std::initializer_list<const char*> names);
std::int64_t read_choice_count(api::Fields& fields);
void ignore_what_has_no_effect(api::Fields& fields);

Json usage_json(const api::Usage& usage);
// The usage of all choices; the prompt counts once.
api::Usage total(const std::vector<api::Answer>& answers);

}  // namespace sluice::server::openai
