// Converts the items of OpenAI's responses protocol to chat messages.
#pragma once

#include <string>

#include "server/json.h"

namespace sluice::server::responses {

// A text or an array of items, as an array of items.
Json input_items(const Json& input);
// As messages of the chat protocol. Throws ApiError naming an invalid item.
Json messages_of(const Json& items);
// A function's name for the model: those in a namespace have its name as a prefix.
std::string name_in(const Json& name_space, const std::string& function);

}  // namespace sluice::server::responses
