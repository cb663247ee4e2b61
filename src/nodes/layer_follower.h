// A node that holds layers for the one that leads, and does with its slots what that one says.
#pragma once

#include <map>

#include "engine/executor.h"
#include "nodes/agreement.h"
#include "nodes/commands.h"
#include "nodes/follower.h"

namespace sluice::nodes {

class LayerFollower final : public Follower {
 public:
  LayerFollower(std::shared_ptr<Cluster> cluster, std::string program)
      : cluster_(std::move(cluster)), program_(std::move(program)) {}

  Range divide(const engine::Core& core) override;
  void connect(engine::Core& core) override;
  std::unique_ptr<state::PoolReplica> open(const state::Extent&, std::int64_t) override { return nullptr; }
  std::int64_t begin(state::PoolReplica*, const engine::Batch&) override { return 0; }

  void follow(engine::Core& core) override;

 private:
  using Groups = std::map<int, std::shared_ptr<engine::SlotGroup>>;

  // Says whether to go on.
  bool obey(engine::Core& core, Groups& groups, Reader& reader);
  void open(engine::Core& core, Groups& groups, Reader& reader);
  void save(state::StatePool& pool, Reader& reader);
  void load(state::StatePool& pool, Reader& reader);

  std::shared_ptr<Cluster> cluster_;
  std::string program_;
};

}  // namespace sluice::nodes
