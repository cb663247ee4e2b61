// What one node holds of a model in any layout: it leads or follows by layers, by experts, or both.
#pragma once

#include "nodes/agreement.h"
#include "nodes/experts/expert_follower.h"
#include "nodes/experts/expert_leader.h"
#include "nodes/stages/layer_follower.h"
#include "nodes/stages/layer_leader.h"

namespace sluice::nodes {

class Share final : public engine::LayerShare {
 public:
  // `layout` is what the user wrote; the leading node's counts.
  Share(std::shared_ptr<Cluster> cluster, std::string program, std::string layout);

  Range divide(const engine::Core& core) override;
  std::optional<Range> own_experts() const override;
  bool holds_dense() const override { return cluster_->rank() == place_.head(); }
  std::string name() const override { return cluster_->rank() == 0 ? cluster_->name(0) : ""; }
  void connect(engine::Core& core) override;
  std::unique_ptr<state::PoolReplica> open(const state::Extent& extent, std::int64_t chunk) override;
  std::int64_t begin(state::PoolReplica* replica, const engine::Batch& batch) override;
  std::int64_t stages() const override { return layer_leader_ ? layer_leader_->stages() : 1; }

  // Serves the other nodes until they are done.
  void follow(engine::Core& core);

 private:
  std::shared_ptr<Cluster> cluster_;
  std::string program_;
  std::string layout_;
  NodePlace place_;
  // The roles of this node.
  std::optional<stages::LayerLeader> layer_leader_;
  std::optional<stages::LayerFollower> layer_follower_;
  std::optional<experts::ExpertLeader> expert_leader_;
  std::optional<experts::ExpertFollower> expert_follower_;
};

}  // namespace sluice::nodes
