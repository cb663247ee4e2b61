// What Qwen3.5 and Qwen3-Next share: both mix layers of Gated DeltaNet with layers of attention.
#pragma once

#include "base/json.h"
#include "checkpoint/binder.h"
#include "checkpoint/config.h"
#include "layers/gated_delta_net.h"

namespace sluice::models {

// Sizes and the weights of a Gated DeltaNet but for its input projections, which differ between models.
layers::GatedDeltaNet bind_delta_net(const checkpoint::Config& config, checkpoint::Binder& binder,
                                     const std::string& module);
// For each layer whether it is linear attention: layer_types, or every full_attention_interval-th is not.
std::vector<bool> linear_layers(const checkpoint::Config& config);
// The fields of config.json that both state alike.
Json hybrid_sizes(int hidden, int layers, int heads, int kv_heads, int value_heads);

}  // namespace sluice::models
