// A node that holds layers for the one that leads, and does with its slots what that one says.
#pragma once

#include <map>

#include "engine/executor.h"
#include "nodes/cluster.h"
#include "nodes/layers/commands.h"

namespace sluice::nodes {

class LayerFollower {
 public:
  struct Neighbours {
    int previous = 0;
    int next = 0;  // 0: the rows go back to the node that leads
  };
  LayerFollower(std::shared_ptr<Cluster> cluster, Neighbours neighbours)
      : cluster_(std::move(cluster)), neighbours_(neighbours) {}

  void connect(engine::Core& core);
  // Does what the leading node asks for until that one ends.
  void follow(engine::Core& core);

 private:
  using Groups = std::map<int, std::shared_ptr<engine::SlotGroup>>;

  // Says whether to go on.
  bool obey(engine::Core& core, Groups& groups, Reader& reader);
  void open(engine::Core& core, Groups& groups, Reader& reader);
  void promise(engine::ForwardPass& pass, Reader& reader);
  // Copies states or rows to the leading node, or from there.
  void copy(Command command, state::StatePool& pool, Reader& reader);

  std::shared_ptr<Cluster> cluster_;
  Neighbours neighbours_;
};

}  // namespace sluice::nodes
