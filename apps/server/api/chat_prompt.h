// Conversations as the model's own template writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/json.h"
#include "server/served_model.h"

namespace sluice::server::api {

// The messages of OpenAI's chat protocol in the form templates expect: contents are texts, arguments of
// calls are objects, developers are systems. Throws ApiError naming the message that makes no sense.
Json template_messages(const Json& messages);

// What the template is given beside the messages.
struct ChatSettings {
  Json variables = Json::object();  // chat_template_kwargs and their like
  bool continue_last = true;        // an assistant's message at the end is the beginning of the answer
};

struct ChatPrompt {
  std::vector<std::int32_t> ids;
  std::string text;  // what the ids stand for
  // Its end, from where the answer belongs to the assistant: it tells whether thinking is open. Earlier text
  // may say anything.
  std::string tail;
  bool continues = false;  // it ends with the beginning of the answer
};

// `messages` in the template's form.
ChatPrompt render_chat(const ServedModel& model, const Json& messages, const ChatSettings& settings);

// Variables from a request's chat_template_kwargs and reasoning_effort ("none" switches thinking off).
Json template_variables(const Json* kwargs, const std::string& reasoning_effort);

}  // namespace sluice::server::api
