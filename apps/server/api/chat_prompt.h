// Renders conversations with the model's own template.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/json.h"
#include "server/served_model.h"

namespace sluice::server::api {

// The messages of OpenAI's chat protocol in the form that templates expect: contents are texts, arguments of
// calls are objects, the developer role is system. Throws ApiError naming an invalid message.
Json template_messages(const Json& messages);

// What the template gets besides the messages.
struct ChatSettings {
  Json variables = Json::object();  // chat_template_kwargs and similar
  bool continue_last = true;        // whether an assistant message at the end begins the answer
};

struct ChatPrompt {
  std::vector<std::int32_t> ids;
  std::string text;  // the text of the ids
  // Its end, from where the answer begins: it shows whether thinking is open. Earlier text may contain
  // anything.
  std::string tail;
  bool continues = false;  // whether it ends with the beginning of the answer
};

// `messages` in the template's form.
ChatPrompt render_chat(const ServedModel& model, const Json& messages, const ChatSettings& settings);

// Variables from a request's chat_template_kwargs and reasoning_effort ("none" switches thinking off).
Json template_variables(const Json* kwargs, const std::string& reasoning_effort);

}  // namespace sluice::server::api
