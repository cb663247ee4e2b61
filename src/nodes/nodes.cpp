#include "sluice/nodes.h"

#include "base/error.h"
#include "nodes/roll_call.h"
#include "nodes/share.h"

namespace sluice {

namespace {

std::shared_ptr<nodes::Cluster> join(const NodesOptions& options) {
  std::unique_ptr<nodes::Transport> transport = nodes::join_mpi();
  if (transport->size() < 2) {
    transport->close();
    fail(ErrorKind::input, "there is only one node: start all nodes with 'mpirun -n 2 sluice ...'");
  }
  return std::make_shared<nodes::Cluster>(std::move(transport),
                                          nodes::Cluster::Options{.lost = options.lost});
}

}  // namespace

RollCall::RollCall() : roll_(nodes::make_roll()) {}
RollCall::~RollCall() = default;

void RollCall::begin() {
  roll_->begin();
}

std::optional<std::vector<std::string>> RollCall::silent(std::chrono::milliseconds patience) const {
  return roll_->silent(patience);
}

Nodes::Nodes(const NodesOptions& options) : Nodes(join(options), options) {}
Nodes::Nodes(std::shared_ptr<nodes::Cluster> cluster, const NodesOptions& options)
    : cluster_(std::move(cluster)), options_(options) {}
Nodes::~Nodes() = default;

int Nodes::rank() const {
  return cluster_->rank();
}
int Nodes::count() const {
  return cluster_->size();
}

std::shared_ptr<engine::LayerShare> Nodes::share() {
  return std::make_shared<nodes::Share>(cluster_, options_.program, options_.layers);
}

void Nodes::follow(Engine& engine) {
  engine::Core& core = engine::core(engine);
  auto* share = dynamic_cast<nodes::Share*>(core.options.share.get());
  if (share == nullptr) fail(ErrorKind::input, "this node's engine was not loaded for another node");
  share->follow(core);
}

void Nodes::give_up(const std::string& why) noexcept {
  cluster_->give_up(why);
}

}  // namespace sluice
