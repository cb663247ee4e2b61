// Moves a bound model to a device's memory.
#pragma once

#include <functional>

#include "models/model.h"
#include "sluice/ops/backend.h"

namespace sluice::engine::placement {

// The memory that a placed model points to.
struct PlacedModel {
  ops::Buffer weights;
  ops::Buffer choices;
};

// Whether a layer's shared expert can be one more of its experts.
bool joins_shared_expert(const layers::Moe& moe);

// Copies every tensor into one block on the backend, those that multiply the same input side by side, and
// points the model at it. Throws before copying if the block does not fit. `tokens` is the maximum per pass;
// `progress` receives bytes done and in all. Without `experts`, those stay where they are.
PlacedModel upload(models::Model& model, ops::Backend& backend, std::int64_t tokens,
                   const std::function<void(std::uint64_t done, std::uint64_t all)>& progress,
                   bool experts = true);

}  // namespace sluice::engine::placement
