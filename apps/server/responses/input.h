// The items of OpenAI's responses protocol and what they are as messages of a chat.
#pragma once

#include <string>

#include "server/json.h"

namespace sluice::server::responses {

// A text or an array of items, always as an array of items.
Json input_items(const Json& input);
// As messages of the chat protocol. Throws ApiError naming the item that makes no sense.
Json messages_of(const Json& items);
// A function as the model knows it: those of a namespace have its name before theirs.
std::string name_in(const Json& name_space, const std::string& function);

}  // namespace sluice::server::responses
