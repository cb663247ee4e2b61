// What a request demands of the answer's form: tools, response_format, and the extras of local servers.
#pragma once

#include <string_view>

#include "server/api/fields.h"
#include "sluice/answer_guide.h"

namespace sluice::server::openai {

// The names that other local servers gave the same wishes (guided_json, grammar, ...): every protocol here
// takes them. One wish is allowed: a second one is refused with the names of both, of which `format` is the
// protocol's own, which has filled the answer's content.
void read_extras(api::Fields& fields, AnswerRequest& answer, std::string_view format);

// All but the prompt.
AnswerRequest read_structure(api::Fields& fields);

}  // namespace sluice::server::openai
