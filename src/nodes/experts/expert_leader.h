// The head of a stage whose nodes share experts: it holds everything that every token uses and some experts
// of each layer, and sends rows to the other nodes for the results of theirs.
#pragma once

#include <optional>

#include "engine/core.h"
#include "layers/moe/host_part.h"
#include "nodes/cluster.h"

namespace sluice::nodes::experts {

class ExpertLeader final : public layers::moe::RemoteExperts {
 public:
  // `first_experts`: the first expert of each node of the stage, whose ranks follow this one's, then the
  // total.
  ExpertLeader(std::shared_ptr<Cluster> cluster, std::vector<std::int64_t> first_experts);
  ~ExpertLeader() override;  // dismisses the others
  ExpertLeader(const ExpertLeader&) = delete;
  ExpertLeader& operator=(const ExpertLeader&) = delete;

  void connect(engine::Core& core);

  void request(const Question& question) override;
  void await() override;

 private:
  // A request that a node has not answered yet.
  struct Pending {
    int rank = 0;
    std::vector<std::int32_t> results;  // rows of `out` that the answer fills, in its order
  };
  // `node` counts from this one within the stage.
  void request(int node, const Question& question);
  int others() const { return static_cast<int>(first_.size()) - 2; }
  int rank(int node) const { return cluster_->rank() + node; }

  std::shared_ptr<Cluster> cluster_;
  std::vector<std::int64_t> first_;
  std::optional<layers::moe::HostPart> host_;  // set if a device computes the rest
  ops::View out_;                              // where pending results go
  std::vector<Pending> pending_;
};

}  // namespace sluice::nodes::experts
