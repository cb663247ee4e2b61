// POST /v1/responses.
#pragma once

#include <memory>

#include "server/api/work.h"
#include "server/responses/store.h"
#include "server/served_model.h"

namespace sluice::server::responses {

// What belongs to `client` is kept in `store`, which must outlive the answer.
api::Work create(const Json& body, const ServedModel& model, Store& store, const std::string& client);

// POST /v1/responses/input_tokens: how many tokens such a request has, also where they are too many.
Json count_input(const Json& body, const ServedModel& model, Store& store, const std::string& client);

}  // namespace sluice::server::responses
