// The layers that an engine holds of a model, where other nodes hold the rest of it.
//
// One engine leads: it embeds tokens, holds the first layers, and has the final norm, the output head and all
// that concerns text. The others hold the layers behind, in order. Rows of the residual go from each to the
// next and from the last to the first; whatever the leading engine does with its slots, the others do too.
//
// Or the leading engine holds all layers but only some experts of each, and the others hold the others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/batch.h"
#include "state/cache_format.h"
#include "state/pool_replica.h"

namespace sluice::engine {

struct Core;

class LayerShare {
 public:
  virtual ~LayerShare() = default;

  // Layers [first, end) of a model.
  struct Range {
    std::int64_t first = 0;
    std::int64_t end = 0;
  };
  // Which layers of the model are held here: all nodes agree on it, and on everything that results depend
  // on. Called once, when the whole model is bound and nothing of it is read.
  virtual Range divide(const Core& core) = 0;
  // Which experts of each layer are held here, and whether what every token uses is; asked behind divide().
  virtual std::optional<Range> own_experts() const { return std::nullopt; }
  virtual bool holds_dense() const { return true; }
  // Called once, when the weights are in their place: connects the decoder with its neighbours.
  virtual void connect(Core& core) = 0;

  // Of the engine that leads; the others return nothing and do nothing.
  // Makes slots of the same extent elsewhere; they go with what is returned.
  virtual std::unique_ptr<state::PoolReplica> open(const state::Extent& extent, std::int64_t chunk) = 0;
  // The batch is about to run in the slots that `replica` stands for. Returns the number of the pass.
  virtual std::int64_t begin(state::PoolReplica* replica, const Batch& batch) = 0;
  // How many steps of different sequences keep all nodes at work, each with one of them.
  virtual std::int64_t stages() const { return 1; }
};

}  // namespace sluice::engine
