// The required form of an answer: tools, response_format, and the extensions of local servers.
#pragma once

#include <string_view>

#include "server/api/fields.h"
#include "sluice/answer_guide.h"

namespace sluice::server::openai {

// The names that other local servers use for the same constraints (guided_json, grammar, ...), accepted in
// every protocol. Only one constraint is allowed: a second one is rejected with both names, where `format` is
// the name of the protocol's own field, which has already set the answer's content.
void read_extras(api::Fields& fields, AnswerRequest& answer, std::string_view format);

// Everything but the prompt.
AnswerRequest read_structure(api::Fields& fields);

}  // namespace sluice::server::openai
