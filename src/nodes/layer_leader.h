// The node that leads: text, the embedding, the first layers, the output head and sampling are here.
#pragma once

#include <deque>

#include "nodes/agreement.h"
#include "nodes/commands.h"

namespace sluice::nodes {

class LayerLeader final : public engine::LayerShare {
 public:
  LayerLeader(std::shared_ptr<Cluster> cluster, std::string program, std::string split);
  ~LayerLeader() override;  // lets the others go

  Range divide(const engine::Core& core) override;
  void connect(engine::Core& core) override;
  std::unique_ptr<state::PoolReplica> open(const state::Extent& extent, std::int64_t chunk) override;
  std::int64_t begin(state::PoolReplica* replica, const engine::Batch& batch) override;
  std::int64_t stages() const override { return cluster_->size(); }

 private:
  class RemotePool;

  // Commands wait until one of them must be done: one message then has them all.
  template <class... Values>
  void post(Command command, const Values&... values);
  void flush();
  void close(int group) noexcept;
  // The last node answers every pass, by the rows that are wanted or by nothing, in the order of the passes.
  struct Answer {
    std::int64_t pass = 0;
    bool wanted = false;
    bool came = false;
    Message rows = {};
  };
  // Waits for the next one.
  void await_answer();
  void send_rows(const engine::Core& core, const layers::Pass& pass, const ops::View& x);
  void receive_rows(const engine::Core& core, const layers::Pass& pass, const ops::View& x);

  std::shared_ptr<Cluster> cluster_;
  std::string program_;
  std::string split_;
  std::mutex mutex_;
  Writer commands_;
  bool agreed_ = false;
  int groups_ = 0;
  std::int64_t passes_ = 0;
  std::deque<Answer> answers_;  // that have not come, and before them those that nobody took yet
};

}  // namespace sluice::nodes
