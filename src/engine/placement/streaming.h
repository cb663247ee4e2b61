// Models of which only what every token uses is kept where it is computed; experts come as they are needed.
#pragma once

#include <functional>

#include "checkpoint/weight_store.h"
#include "experts/device_tier.h"
#include "models/model.h"
#include "sluice/engine.h"

namespace sluice::engine {

struct StreamedModel {
  ops::Buffer dense;
  std::unique_ptr<experts::Cache> cache;      // experts in host memory
  std::unique_ptr<ops::Backend> cpu;          // computes some of them for the device
  std::unique_ptr<experts::DeviceTier> tier;  // experts on a device, behind it the cache
};

// A cache without slots for the model's experts, which it reads from where they are bound to: the files stay
// mapped, but nothing reads through the mapping. `pinned` allocates memory that a device copies from; absent:
// the host computes with the cache itself.
std::unique_ptr<experts::Cache> make_cache(models::Model& model, const checkpoint::WeightStore& store,
                                           const EngineOptions& options,
                                           const std::function<ops::Buffer(std::size_t bytes)>& pinned = {});

// Copies what every token uses from the mapped files into memory and points the model at the copies.
ops::Buffer copy_dense(models::Model& model, const checkpoint::TensorFiles& files,
                       const std::function<void(std::uint64_t done, std::uint64_t all)>& progress);

// Lets each layer guess what the next one will choose, with the weights where they are now.
void set_foresight(layers::Decoder& decoder);

struct TierSizes {
  std::int64_t slots;
  std::int64_t tokens;  // the most of one pass
  ops::DType activations;
};

// Slots on a device for a model whose other tensors are there already.
void make_tier(models::Model& model, ops::Backend& backend, StreamedModel& streamed, const TierSizes& sizes,
               const EngineOptions& options);

// The fewest slots per layer that do not thrash: one token's experts and one more.
std::int64_t least_slots(const layers::Decoder& decoder);

}  // namespace sluice::engine
