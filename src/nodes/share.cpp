#include "nodes/share.h"

#include "base/error.h"

namespace sluice::nodes {

Share::Share(std::shared_ptr<Cluster> cluster, std::string program, std::string layout)
    : cluster_(std::move(cluster)), program_(std::move(program)), layout_(std::move(layout)) {}

engine::LayerShare::Range Share::divide(const engine::Core& core) {
  place_ = place_of(agree(*cluster_, core, program_, layout_), cluster_->rank());
  const std::vector<int>& heads = place_.heads;
  if (!holds_dense()) {
    expert_follower_.emplace(cluster_, place_.head());
    return place_.layers;
  }
  if (!place_.first_experts.empty()) expert_leader_.emplace(cluster_, place_.first_experts);
  const std::size_t next = place_.stage + 1;
  if (place_.stage > 0)
    layer_follower_.emplace(cluster_, stages::LayerFollower::Neighbours{
                                          heads[place_.stage - 1], next < heads.size() ? heads[next] : 0});
  else if (heads.size() > 1)
    layer_leader_.emplace(cluster_, heads);
  return place_.layers;
}

std::optional<engine::LayerShare::Range> Share::own_experts() const {
  if (place_.first_experts.empty()) return std::nullopt;
  const std::size_t node = to_size(cluster_->rank() - place_.head());
  return Range{place_.first_experts[node], place_.first_experts[node + 1]};
}

void Share::connect(engine::Core& core) {
  if (expert_follower_) expert_follower_->connect(core);
  if (expert_leader_) expert_leader_->connect(core);
  if (layer_follower_) layer_follower_->connect(core);
  if (layer_leader_) layer_leader_->connect(core);
}

std::unique_ptr<state::PoolReplica> Share::open(const state::Extent& extent, std::int64_t chunk) {
  return layer_leader_ ? layer_leader_->open(extent, chunk) : nullptr;
}

std::int64_t Share::begin(state::PoolReplica* replica, const engine::Batch& batch) {
  return layer_leader_ ? layer_leader_->begin(replica, batch) : 0;
}

void Share::follow(engine::Core& core) {
  if (expert_follower_) return expert_follower_->follow(core);
  if (!layer_follower_) fail(ErrorKind::input, "the leading node cannot follow another one");
  layer_follower_->follow(core);
}

}  // namespace sluice::nodes
