// What a request demands of the answer's form: tools, response_format, and the extras of local servers.
#pragma once

#include <optional>

#include "server/api/fields.h"
#include "sluice/answer_guide.h"

namespace sluice::server::openai {

// The names that other local servers gave the same wishes (guided_json, grammar, ...): every protocol here
// takes them.
std::optional<GrammarSource> read_extras(Fields& fields);

// All but the prompt.
AnswerRequest read_structure(Fields& fields);

}  // namespace sluice::server::openai
