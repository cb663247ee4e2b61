// GET /v1/responses/ID, GET /v1/responses/ID/input_items and POST /v1/responses/ID/cancel.
#pragma once

#include "server/api/work.h"
#include "server/responses/store.h"

namespace sluice::server::responses {

// `rest` is what follows /responses/.
Json show(Store& store, const std::string& client, const std::string& rest);
// The events of a background response, if the query asks for them.
std::optional<api::Following> follow(Store& store, const std::string& client, const std::string& rest,
                                     const std::string& query);
Json cancel(Store& store, const std::string& client, const std::string& rest);

}  // namespace sluice::server::responses
