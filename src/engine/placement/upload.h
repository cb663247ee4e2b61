// Moving a bound model to a device's memory.
#pragma once

#include <functional>

#include "models/model.h"
#include "sluice/ops/backend.h"

namespace sluice::engine {

// What a placed model points to.
struct PlacedModel {
  ops::Buffer weights;
  ops::Buffer choices;
};

// Whether a layer's shared expert can be one more of its experts.
bool joins_shared_expert(const layers::Moe& moe);

// Copies every tensor into one block on the backend, those that are multiplied with the same input side by
// side, and points the model at the copies. Refuses before anything is copied if the block does not fit.
// `tokens` is the most of one pass; `progress` hears of bytes done and in all. Without `experts` those stay.
PlacedModel upload(models::Model& model, ops::Backend& backend, std::int64_t tokens,
                   const std::function<void(std::uint64_t done, std::uint64_t all)>& progress,
                   bool experts = true);

}  // namespace sluice::engine
