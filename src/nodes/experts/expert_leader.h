// The head of a stage whose nodes share experts: it holds all that every token uses and some experts of each
// layer, and asks the others for what theirs make of its rows.
#pragma once

#include <optional>

#include "engine/core.h"
#include "layers/moe/host_part.h"
#include "nodes/cluster.h"

namespace sluice::nodes {

class ExpertLeader final : public layers::moe::RemoteExperts {
 public:
  // The first expert of each node of the stage, whose ranks follow this one's, and how many there are.
  ExpertLeader(std::shared_ptr<Cluster> cluster, std::vector<std::int64_t> first_experts);
  ~ExpertLeader() override;  // lets the others go
  ExpertLeader(const ExpertLeader&) = delete;
  ExpertLeader& operator=(const ExpertLeader&) = delete;

  void connect(engine::Core& core);

  void request(const Question& question) override;
  void await() override;

 private:
  // What a node was asked for and has not answered.
  struct Pending {
    int rank = 0;
    std::vector<std::int32_t> results;  // of which rows of `out`, in the order of the answer
  };
  // Of a node of the stage, counted from this one.
  void request(int node, const Question& question);
  int others() const { return static_cast<int>(first_.size()) - 2; }
  int rank(int node) const { return cluster_->rank() + node; }

  std::shared_ptr<Cluster> cluster_;
  std::vector<std::int64_t> first_;
  std::optional<layers::moe::HostPart> host_;  // where a device computes the rest
  ops::View out_;                              // of what is pending
  std::vector<Pending> pending_;
};

}  // namespace sluice::nodes
