// A node that holds some experts of each layer for the head of its stage.
#pragma once

#include "engine/core.h"
#include "nodes/cluster.h"
#include "nodes/wire.h"

namespace sluice::nodes::experts {

class ExpertFollower {
 public:
  ExpertFollower(std::shared_ptr<Cluster> cluster, int head) : cluster_(std::move(cluster)), head_(head) {}

  void connect(engine::Core& core);
  // Serves the head of its stage until that node ends.
  void follow(engine::Core& core);

 private:
  // Workspace for the activations of one request to any layer's experts.
  std::size_t arena_bytes(ops::DType activations) const;
  Message answer(engine::Core& core, layers::Arena& arena, Reader& reader);

  std::shared_ptr<Cluster> cluster_;
  int head_;
  std::vector<const layers::Moe*> moes_;
};

}  // namespace sluice::nodes::experts
