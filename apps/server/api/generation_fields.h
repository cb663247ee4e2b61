// The generation fields that the protocols share.
#pragma once

#include "server/api/fields.h"
#include "server/served_model.h"
#include "sluice/answer_guide.h"
#include "sluice/scheduler.h"

namespace sluice::server::api {

// A request before its number of choices is known. A guide is for one answer, so each choice gets its own.
struct Generation {
  Request request;

  // The seed is incremented so that choices differ. `answer` constrains the answers; how to parse them is
  // written to `plan`.
  std::vector<Request> choices(std::int64_t count, const AnswerRequest& answer, const ServedModel& model,
                               AnswerPlan& plan) const;
};

// Sampling, penalties, stops and extensions of local servers: top_k, min_p, repetition_penalty, ignore_eos,
// min_tokens, cache_salt, priority. The prompt and the length are left to the caller.
Generation read_generation(Fields& fields, const ServedModel& model);

// The maximum of prompt tokens, which leaves at least one for the answer.
std::int64_t most_prompt_tokens(const ServedModel& model);

// Sets the prompt and the maximum of tokens to generate: `asked`, or what the context has left. `param` names
// the prompt's field.
void set_prompt(Request& request, std::vector<std::int32_t> ids, std::optional<std::int64_t> asked,
                const ServedModel& model, const std::string& param);

}  // namespace sluice::server::api
