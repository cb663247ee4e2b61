// A family of models: how a checkpoint of it is bound and converted, and the shapes of its well-known
// members. Each has one file that defines one Family; registry.cpp lists them.
#pragma once

#include <span>
#include <string_view>

#include "base/json.h"
#include "models/model.h"

namespace sluice::models {

// A well-known model's config.json.
struct Geometry {
  std::string_view name;
  Json (*config)();
};

// What a conversion to the MLX format must know; names are compared by their ends.
struct ConversionRules {
  // The language model may be a part of a multimodal wrapper, and is one in the MLX format.
  bool wrapped = false;
  std::span<const std::string_view> delta_net_inputs = {};  // of a Gated DeltaNet
  bool latent_attention = false;
  bool dense_router = false;  // with a bias that corrects the choice
  bool shared_expert_gate = false;
  bool draft_layers = false;                                 // stored after the last layer, dropped
  bool may_be_tied = true;                                   // the output head to the embedding
  std::string_view experts_key = "num_experts";              // of config.json
  std::span<const std::string_view> eight_bit_modules = {};  // routed by few numbers: 8 bits in groups of 64
  std::string_view keeps_dtype = "";                         // the parameter that keeps its stored type
};

struct Family {
  std::span<const std::string_view> model_types;  // as config.json names them
  Model (*build)(const checkpoint::Config& config, checkpoint::Binder& binder);
  std::span<const Geometry> geometries;
  ConversionRules conversion;
};

std::span<const Family* const> families();
// The family of a model_type; throws for unknown ones.
const Family& family_of(const checkpoint::Config& config);

}  // namespace sluice::models
