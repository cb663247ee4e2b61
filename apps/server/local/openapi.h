// GET /openapi.json: what the server answers to, for programs.
#pragma once

#include "server/json.h"

namespace sluice::server::local {

Json openapi();

}  // namespace sluice::server::local
