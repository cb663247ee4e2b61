// The fields that say how to generate, which the protocols share by name.
#pragma once

#include "server/api/fields.h"
#include "server/served_model.h"
#include "sluice/answer_guide.h"
#include "sluice/scheduler.h"

namespace sluice::server::api {

// A request before it is known how many choices it has. A guide follows one answer, so each choice gets its
// own.
struct Generation {
  Request request;

  // The seed counts up so that choices differ. What the answers may be is `answer`'s; how to read them is
  // written to `plan`.
  std::vector<Request> choices(std::int64_t count, const AnswerRequest& answer, const ServedModel& model,
                               AnswerPlan& plan) const;
};

// Sampling, penalties, stops and what local servers share: top_k, min_p, repetition_penalty, ignore_eos,
// min_tokens, cache_salt, priority. The prompt and how much to generate are left to the caller.
Generation read_generation(Fields& fields, const ServedModel& model);

// Tokens that a prompt may have: at least one is left for the answer.
std::int64_t most_prompt_tokens(const ServedModel& model);

// Sets the prompt, and how many tokens may follow: `asked`, or what the context has left. `param` is where
// the prompt came from.
void set_prompt(Request& request, std::vector<std::int32_t> ids, std::optional<std::int64_t> asked,
                const ServedModel& model, const std::string& param);

}  // namespace sluice::server::api
