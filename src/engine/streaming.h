// A model of which only the dense part is kept in memory; experts are read as they are needed.
#pragma once

#include <functional>

#include "checkpoint/shards.h"
#include "experts/cache.h"
#include "models/model.h"
#include "sluice/engine.h"

namespace sluice::engine {

struct StreamedModel {
  ops::Buffer dense;
  std::unique_ptr<experts::Cache> cache;
};

// Copies what every token uses into memory and points the model at the copies and at a cache of experts that
// has no slots yet. `files` stay mapped: views of experts say where to read, nothing reads through them.
StreamedModel stream(models::Model& model, const checkpoint::TensorFiles& files,
                     const EngineOptions& options);

// The fewest slots a layer that do not thrash: one token's experts and one more.
std::int64_t least_slots(const layers::Decoder& decoder);

}  // namespace sluice::engine
