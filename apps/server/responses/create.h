// POST /v1/responses.
#pragma once

#include <memory>

#include "server/api/work.h"
#include "server/responses/store.h"
#include "server/served_model.h"

namespace sluice::server::responses {

// Stores the client's responses in `store`, which must outlive the answer.
api::Work create(const Json& body, const ServedModel& model, Store& store, const std::string& client);

// POST /v1/responses/input_tokens: the number of tokens of such a request, even if they are too many.
Json count_input(const Json& body, const ServedModel& model, Store& store, const std::string& client);

}  // namespace sluice::server::responses
