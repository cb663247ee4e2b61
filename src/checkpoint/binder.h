// Provides the weights that a model describes: from a checkpoint, or random ones. Names are those MLX writes;
// a binder knows the alternatives.
#pragma once

#include <span>
#include <string>

#include "sluice/ops/weight.h"

namespace sluice::checkpoint {

enum class ParameterKind {
  plain,
  zero_centered,  // a norm's weight, which raw checkpoints store minus one
};

class Binder {
 public:
  virtual ~Binder() = default;

  // The matrix (or stack of matrices) of module "model.layers.0.mlp.gate", of this logical shape.
  virtual ops::Weight weight(const std::string& module, const ops::Shape& shape) = 0;
  // The same with the rows permuted: row i of the result is row order[i] of the stored matrix.
  virtual ops::Weight reordered(const std::string& module, const ops::Shape& shape,
                                std::span<const std::int64_t> order) = 0;
  // Projection "gate_proj", "up_proj" or "down_proj" of the experts under "model.layers.0.mlp", [E,N,K].
  virtual ops::ExpertWeights experts(const std::string& mlp, const std::string& projection,
                                     const ops::Shape& shape) = 0;
  // A small vector or table as F32, contiguous and aligned.
  virtual ops::ConstView parameter(const std::string& tensor, const ops::Shape& shape,
                                   ParameterKind kind) = 0;
  // Whether the module's weight exists, for weights that come in one of two forms.
  virtual bool has(const std::string& module) const = 0;
};

}  // namespace sluice::checkpoint
