// The leading node: text, the embedding, the first layers, the output head and sampling run here. The heads
// of the other stages hold the later layers.
#pragma once

#include <deque>

#include "engine/core.h"
#include "nodes/cluster.h"
#include "nodes/stages/commands.h"

namespace sluice::nodes::stages {

class LayerLeader {
 public:
  // Ranks of the heads of all stages, its own first.
  LayerLeader(std::shared_ptr<Cluster> cluster, const std::vector<int>& heads);
  ~LayerLeader();  // dismisses the others
  LayerLeader(const LayerLeader&) = delete;
  LayerLeader& operator=(const LayerLeader&) = delete;

  // As declared in engine::LayerShare.
  void connect(engine::Core& core);
  std::unique_ptr<state::PoolReplica> open(const state::Extent& extent, std::int64_t chunk);
  std::int64_t begin(state::PoolReplica* replica, const engine::Batch& batch);
  std::int64_t stages() const { return std::ssize(others_) + 1; }

 private:
  class RemotePool;

  // Commands are queued until one must run now; one message then carries them all.
  template <class... Values>
  void post(Command command, const Values&... values);
  void flush();
  template <class F>
  void expect_no_refusal(F&& more);
  void close(int group) noexcept;
  // The last node answers every pass, in order, with the rows whose logits are wanted or with nothing.
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
  std::vector<int> others_;  // heads, in the order of their layers
  std::mutex mutex_;
  Writer commands_;
  int groups_ = 0;
  std::int64_t passes_ = 0;
  std::deque<Answer> answers_;  // received but not yet taken, then still expected
};

}  // namespace sluice::nodes::stages
