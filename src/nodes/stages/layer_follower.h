// A node that holds layers for the leading node and mirrors that node's slots.
#pragma once

#include <map>

#include "engine/executor.h"
#include "nodes/cluster.h"
#include "nodes/stages/commands.h"

namespace sluice::nodes::stages {

class LayerFollower {
 public:
  struct Neighbours {
    int previous = 0;
    int next = 0;  // 0: the rows go back to the node that leads
  };
  LayerFollower(std::shared_ptr<Cluster> cluster, Neighbours neighbours)
      : cluster_(std::move(cluster)), neighbours_(neighbours) {}

  void connect(engine::Core& core);
  // Serves the leading node until that node ends.
  void follow(engine::Core& core);

 private:
  using Groups = std::map<int, std::shared_ptr<engine::SlotGroup>>;

  // Returns whether to continue.
  bool obey(engine::Core& core, Groups& groups, Reader& reader);
  void open(engine::Core& core, Groups& groups, Reader& reader);
  void promise(engine::ForwardPass& pass, Reader& reader);
  // Copies states or rows to or from the leading node.
  void copy(Command command, state::StatePool& pool, Reader& reader);

  std::shared_ptr<Cluster> cluster_;
  Neighbours neighbours_;
};

}  // namespace sluice::nodes::stages
