// GET /openapi.json: what the server answers to, for programs.
#pragma once

#include "server/api/json.h"

namespace sluice::server {

Json openapi();

}  // namespace sluice::server
