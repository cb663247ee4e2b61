// The node that leads where nodes share experts: it holds all that every token uses and some experts of each
// layer, and asks the others for what theirs make of its rows.
#pragma once

#include "layers/moe/spread_experts.h"
#include "nodes/agreement.h"

namespace sluice::nodes {

class ExpertLeader final : public engine::LayerShare, public layers::moe::RemoteExperts {
 public:
  ExpertLeader(std::shared_ptr<Cluster> cluster, std::string program, std::string split);
  ~ExpertLeader() override;  // lets the others go

  Range divide(const engine::Core& core) override;
  std::optional<Range> own_experts() const override { return Range{0, first_[1]}; }
  void connect(engine::Core& core) override;
  // Slots are here alone.
  std::unique_ptr<state::PoolReplica> open(const state::Extent&, std::int64_t) override { return nullptr; }
  std::int64_t begin(state::PoolReplica*, const engine::Batch&) override { return 0; }

  void request(const Question& question) override;
  void await() override;

 private:
  // What a node was asked for and has not answered.
  struct Pending {
    int node = 0;
    std::vector<std::int32_t> results;  // of which rows of `out`, in the order of the answer
  };
  void request(int node, const Question& question);

  std::shared_ptr<Cluster> cluster_;
  std::string program_;
  std::string split_;
  bool agreed_ = false;
  std::vector<std::int64_t> first_;  // expert of each node, and how many there are
  ops::View out_;                    // of what is pending
  std::vector<Pending> pending_;
};

}  // namespace sluice::nodes
