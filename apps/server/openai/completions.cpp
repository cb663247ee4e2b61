#include "server/openai/completions.h"

#include <algorithm>

#include "server/api/generation_fields.h"
#include "server/openai/completion_reply.h"
#include "server/openai/request_fields.h"
#include "server/openai/structure.h"

namespace sluice::server::openai {

namespace {

constexpr std::size_t kMostPrompts = 64;
constexpr std::int64_t kUsualTokens = 16;  // the protocol's default
constexpr std::int64_t kMostAnswers = 20;  // the protocol's limit

bool is_ids(const Json& json) {
  return json.is_array() && !json.empty() &&
         std::all_of(json.begin(), json.end(), [](const Json& one) { return one.is_number_integer(); });
}

std::vector<std::int32_t> read_ids(const Json& json, const ServedModel& model) {
  std::vector<std::int32_t> ids;
  for (const Json& one : json) {
    const auto id = one.get<std::int64_t>();
    if (id < 0 || id >= model.engine->summary().vocab)
      throw bad_request("Invalid 'prompt': " + std::to_string(id) + " is not a token of this model.",
                        "prompt");
    ids.push_back(id);
  }
  return ids;
}

std::vector<std::int32_t> read_prompt(const Json& json, const ServedModel& model) {
  if (json.is_string()) return model.engine->encode(json.get<std::string>(), true);
  if (is_ids(json)) return read_ids(json, model);
  throw bad_request(
      "Invalid 'prompt': expected a string, an array of strings, of tokens, or of arrays of tokens.",
      "prompt", "invalid_type");
}

std::vector<std::vector<std::int32_t>> read_prompts(const Json& json, const ServedModel& model) {
  std::vector<std::vector<std::int32_t>> prompts;
  if (!json.is_array() || is_ids(json)) {
    prompts.push_back(read_prompt(json, model));
    return prompts;
  }
  if (json.empty() || json.size() > kMostPrompts)
    throw bad_request("Invalid 'prompt': expected between 1 and 64 prompts.", "prompt");
  for (const Json& one : json) prompts.push_back(read_prompt(one, model));
  return prompts;
}

// The number of answers generated for each prompt: `choices`, or more, of which the most likely are reported.
std::int64_t read_best_of(api::Fields& fields, std::int64_t choices, bool stream) {
  const std::int64_t best = fields.integer("best_of", 1, kMostAnswers).value_or(choices);
  if (best < choices) throw bad_request("Invalid 'best_of': it is less than 'n'.", "best_of");
  if (best > choices && stream)
    throw bad_request("Invalid 'best_of': it compares complete answers, so they cannot be streamed.",
                      "best_of");
  return best;
}

void refuse_unsupported(api::Fields& fields, const CompletionReplySettings& reply) {
  if (!fields.text("suffix").value_or("").empty())
    throw bad_request("'suffix' is not supported by this server.", "suffix", "unsupported_parameter");
  if (reply.prompt_logprobs && reply.common.stream)
    throw bad_request(
        "'echo' together with 'logprobs' cannot be streamed: the prompt is only returned once all of it is "
        "read.",
        "stream", "unsupported_parameter");
}

}  // namespace

api::Work completion(const Json& body, const ServedModel& model) {
  api::Fields fields(body);
  CompletionReplySettings reply;
  reply.common = read_common(fields, model);
  std::vector<std::vector<std::int32_t>> prompts = read_prompts(fields.need("prompt"), model);
  api::Generation generation = api::read_generation(fields, model);
  const auto most = read_max_tokens(fields, {"max_tokens", "max_completion_tokens"});
  const std::int64_t count = read_choice_count(fields);
  if (const auto top = fields.integer("logprobs", 0, kMostAlternatives)) {
    reply.logprobs = true;
    generation.request.options.logprobs = generation.request.options.sampling.logprobs =
        static_cast<int>(*top);
  }
  const std::int64_t generated = read_best_of(fields, count, reply.common.stream);
  reply.told = static_cast<std::size_t>(count);
  if (generated > count && !reply.logprobs)
    generation.request.options.logprobs = generation.request.options.sampling.logprobs = 0;
  const bool echo = fields.flag("echo").value_or(false);
  reply.prompt_logprobs = echo && reply.logprobs;
  refuse_unsupported(fields, reply);
  AnswerRequest answer = read_structure(fields);
  answer.chat = false;
  ignore_what_has_no_effect(fields);
  fields.refuse_others();

  api::Work work;
  for (std::vector<std::int32_t>& ids : prompts) {
    const std::string text = echo ? model.engine->decode(ids) : "";
    api::set_prompt(generation.request, std::move(ids), most.value_or(kUsualTokens), model, "prompt");
    AnswerPlan plan;
    for (Request& request : generation.choices(generated, answer, model, plan)) {
      work.requests.push_back(std::move(request));
      reply.echoes.push_back(text);
    }
    // All choices have the same prompt, so the first one reports it.
    if (reply.prompt_logprobs) {
      Request& first = *(work.requests.end() - generated);
      first.prompt_logprobs = first.options.logprobs;
      reply.first_ids.push_back(first.prompt[0]);
    }
  }
  reply.prompts = prompts.size();
  work.stream = reply.common.stream;
  work.reply = make_completion_reply(reply, model);
  return work;
}

}  // namespace sluice::server::openai
