// Counts a model's parameters, bytes, formats and context memory.
#pragma once

#include "models/model.h"
#include "sluice/engine.h"

namespace sluice::engine {

ModelSummary summarize(const models::Model& model, const state::CacheFormat& cache);

}  // namespace sluice::engine
