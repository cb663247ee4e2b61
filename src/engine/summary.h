// Counting a model: parameters, bytes, formats, memory of context.
#pragma once

#include "models/model.h"
#include "sluice/engine.h"

namespace sluice::engine {

ModelSummary summarize(const models::Model& model, const state::CacheFormat& cache);

}  // namespace sluice::engine
