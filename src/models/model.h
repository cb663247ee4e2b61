// Models by name: config.json in, a decoder with its weights bound out.
#pragma once

#include "checkpoint/binder.h"
#include "checkpoint/config.h"
#include "layers/decoder.h"

namespace sluice::models {

struct Model {
  std::string architecture;  // the model_type of config.json
  layers::Decoder decoder;
  std::int64_t max_positions = 0;
  std::vector<std::string> spare_tensors;  // prefixes of tensors that this model does not use
};

// Builds the model of a model_type; throws for unknown types, and for unknown fields that would change the
// result.
Model build(const checkpoint::Config& config, checkpoint::Binder& binder);
// The known model types.
std::vector<std::string_view> model_types();

}  // namespace sluice::models
