// The part of a model that an engine holds while other nodes hold the rest.
//
// One engine leads: it embeds tokens, holds the first layers, the final norm, the output head and all about
// text. The others hold the following layers, in order. Residual rows go from each node to the next and from
// the last to the first. Whatever the leading engine does with its slots, the others repeat.
//
// Or the leading engine holds all layers but only some experts of each, and other nodes hold the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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
  // The layers that this node holds. All nodes agree on that, and on everything that results depend on.
  // Called once, when the complete model is bound but nothing of it has been read.
  virtual Range divide(const Core& core) = 0;
  // This node's experts of each layer, and whether it holds what every token uses; after divide().
  virtual std::optional<Range> own_experts() const { return std::nullopt; }
  virtual bool holds_dense() const { return true; }
  // On the leading engine, its name for this machine in messages; messages from other nodes carry their names
  // already.
  virtual std::string name() const { return {}; }
  // Called once, when the weights are in place: connects the decoder with its neighbours.
  virtual void connect(Core& core) = 0;

  // For the leading engine; on the others, open() and begin() do nothing and return nothing.
  // Creates slots of the same extent on the other nodes; they exist as long as the result.
  virtual std::unique_ptr<state::PoolReplica> open(const state::Extent& extent, std::int64_t chunk) = 0;
  // Announces that the batch will run in the slots that `replica` stands for. Returns the number of the pass.
  virtual std::int64_t begin(state::PoolReplica* replica, const Batch& batch) = 0;
  // The number of steps of different sequences that keeps all nodes busy, one on each.
  virtual std::int64_t stages() const { return 1; }
};

}  // namespace sluice::engine
