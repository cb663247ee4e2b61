#include "server/openai/chat.h"

#include "server/api/chat_prompt.h"
#include "server/api/generation_fields.h"
#include "server/openai/chat_reply.h"
#include "server/openai/request_fields.h"
#include "server/openai/structure.h"

namespace sluice::server::openai {

namespace {

void read_logprobs(api::Fields& fields, Request& request, ChatReplySettings& reply) {
  reply.logprobs = fields.flag("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, kMostAlternatives);
  if (top && *top > 0 && !reply.logprobs)
    throw bad_request("Invalid 'top_logprobs': it needs 'logprobs' to be true.", "top_logprobs");
  if (!reply.logprobs) return;
  request.options.sampling.logprobs = top.value_or(0);
  request.options.logprobs = request.options.sampling.logprobs;
}

// Rejects parameters of the protocol that request anything but text.
void refuse_non_text(api::Fields& fields) {
  for (const char* name : {"audio", "functions", "function_call", "web_search_options", "moderation"})
    if (fields.has(name))
      throw bad_request(std::string("'") + name + "' is not supported by this server.", name,
                        "unsupported_parameter");
  if (const Json* modalities = fields.array("modalities"))
    for (const Json& one : *modalities)
      if (one != "text")
        throw bad_request("Invalid 'modalities': this server answers with text only.", "modalities");
}

}  // namespace

api::Work chat_completion(const Json& body, const ServedModel& model) {
  api::Fields fields(body);
  ChatReplySettings reply;
  reply.common = read_common(fields, model);
  const Json messages = api::template_messages(fields.need("messages"));
  api::Generation generation = api::read_generation(fields, model);
  read_logprobs(fields, generation.request, reply);
  const std::optional<std::int64_t> most = read_max_tokens(fields, {"max_completion_tokens", "max_tokens"});
  const std::int64_t count = read_choice_count(fields);
  AnswerRequest answer = read_structure(fields);
  api::ChatSettings settings;
  settings.variables = api::template_variables(fields.object("chat_template_kwargs"),
                                               fields.text("reasoning_effort").value_or(""));
  // The prompt lists all tools, even those not allowed now, so that cached prefixes remain valid.
  if (!answer.tools.empty() && answer.choice != ToolChoice::none)
    settings.variables["tools"] = *fields.array("tools");
  const bool begin = fields.flag("add_generation_prompt").value_or(false);
  settings.continue_last = fields.flag("continue_final_message").value_or(!begin);
  if (begin && settings.continue_last)
    throw bad_request("'add_generation_prompt' and 'continue_final_message' exclude each other.",
                      "continue_final_message");
  refuse_non_text(fields);
  fields.ignore({"prediction", "prompt_cache_retention", "prompt_cache_options", "verbosity"});
  ignore_what_has_no_effect(fields);
  fields.refuse_others();

  api::ChatPrompt prompt = api::render_chat(model, messages, settings);
  api::set_prompt(generation.request, std::move(prompt.ids), most, model, "messages");
  answer.prompt = prompt.tail;
  answer.continues = prompt.continues;
  std::vector<Request> requests = generation.choices(count, answer, model, reply.plan);
  return {std::move(requests), reply.common.stream,
          make_chat_reply(reply, model, static_cast<std::size_t>(count))};
}

Json count_input(const Json& body, const ServedModel& model) {
  const api::Work work = chat_completion(body, model.unlimited());
  return {{"object", "response.input_tokens"}, {"input_tokens", work.requests[0].prompt.size()}};
}

}  // namespace sluice::server::openai
