// What a request demands of the answer's form: tools, response_format, and the extras of local servers.
#pragma once

#include "server/api/fields.h"
#include "sluice/answer_guide.h"

namespace sluice::server::openai {

// All but the prompt.
AnswerRequest read_structure(Fields& fields);

}  // namespace sluice::server::openai
