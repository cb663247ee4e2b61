// Moving a bound model to a device's memory.
#pragma once

#include <functional>

#include "models/model.h"
#include "sluice/ops/backend.h"

namespace sluice::engine {

// Copies every tensor into one block on the backend and points the model at the copies. Refuses before
// anything is copied if the block does not fit. `progress` hears of bytes done and in all.
ops::Buffer upload(models::Model& model, ops::Backend& backend,
                   const std::function<void(std::uint64_t done, std::uint64_t all)>& progress);

}  // namespace sluice::engine
