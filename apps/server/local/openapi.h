// GET /openapi.json: a machine-readable description of the server's API.
#pragma once

#include "server/json.h"

namespace sluice::server::local {

Json openapi();

}  // namespace sluice::server::local
