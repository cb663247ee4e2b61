// GET /v1/responses/ID, GET /v1/responses/ID/input_items and POST /v1/responses/ID/cancel.
#pragma once

#include "server/responses/store.h"

namespace sluice::server::responses {

// `rest` is what follows /responses/.
Json show(Store& store, const std::string& client, const std::string& rest);
Json cancel(Store& store, const std::string& client, const std::string& rest);

}  // namespace sluice::server::responses
