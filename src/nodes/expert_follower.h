// A node that holds some experts of each layer for the one that leads.
#pragma once

#include "nodes/agreement.h"
#include "nodes/follower.h"
#include "nodes/wire.h"

namespace sluice::nodes {

class ExpertFollower final : public Follower {
 public:
  ExpertFollower(std::shared_ptr<Cluster> cluster, std::string program)
      : cluster_(std::move(cluster)), program_(std::move(program)) {}

  Range divide(const engine::Core& core) override;
  std::optional<Range> own_experts() const override { return own_; }
  bool holds_dense() const override { return false; }
  void connect(engine::Core& core) override;
  std::unique_ptr<state::PoolReplica> open(const state::Extent&, std::int64_t) override { return nullptr; }
  std::int64_t begin(state::PoolReplica*, const engine::Batch&) override { return 0; }

  void follow(engine::Core& core) override;

 private:
  // The activations of one call with each layer's experts.
  std::size_t arena_bytes(ops::DType activations) const;
  Message answer(engine::Core& core, layers::Arena& arena, Reader& reader);

  std::shared_ptr<Cluster> cluster_;
  std::string program_;
  Range own_;
  std::vector<const layers::Moe*> moes_;
};

}  // namespace sluice::nodes
