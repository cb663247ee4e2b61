// Models of which only the weights that every token uses stay in memory; experts are read when needed.
#pragma once

#include <functional>

#include "checkpoint/weight_store.h"
#include "experts/device_tier.h"
#include "models/model.h"
#include "sluice/engine.h"

namespace sluice::engine::placement {

struct StreamedModel {
  ops::Buffer dense;
  std::unique_ptr<experts::Cache> cache;      // experts in host memory
  std::unique_ptr<ops::Backend> cpu;          // computes some of them for the device
  std::unique_ptr<experts::DeviceTier> tier;  // experts on a device, backed by the cache
};

// A cache for the model's experts, still without slots, which reads them from the bound files: these stay
// mapped, but nothing reads through the mapping. `pinned` allocates memory that a device copies from; null:
// the host itself computes with the cache.
std::unique_ptr<experts::Cache> make_cache(models::Model& model, const checkpoint::WeightStore& store,
                                           const EngineOptions& options,
                                           const std::function<ops::Buffer(std::size_t bytes)>& pinned = {});

// Copies the weights that every token uses from the mapped files into memory and points the model at them.
ops::Buffer copy_dense(models::Model& model, const checkpoint::TensorFiles& files,
                       const std::function<void(std::uint64_t done, std::uint64_t all)>& progress);

// Lets each layer predict the next layer's choices, with the weights where they are now.
void set_foresight(layers::Decoder& decoder);

struct TierSizes {
  std::int64_t slots;
  std::int64_t tokens;  // maximum of one pass
  ops::DType activations;
};

// Creates slots on a device for a model whose other tensors are there already.
void make_tier(models::Model& model, ops::Backend& backend, StreamedModel& streamed, const TierSizes& sizes,
               const EngineOptions& options);

// The fewest slots per layer that do not thrash: one token's experts and one more.
std::int64_t least_slots(const layers::Decoder& decoder);

}  // namespace sluice::engine::placement
