// A model whose layers or experts are split across several machines, with the results of one machine.
//
// All machines run the same program, started by mpirun. Each joins and passes share() to the engine that it
// loads. Those with a rank above 0 then call follow(); rank 0 uses its engine as if it had the whole model.
// The traffic is not encrypted, so use a trusted network.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/engine.h"
#include "sluice/nodes_plan.h"

namespace sluice {

// A node that no longer answers, or that reported why it cannot continue.
struct LostNode {
  int rank = 0;
  bool told = false;  // the node reported it itself
  std::string sentence;
};

struct NodesOptions {
  // Layers per node: "12,20,8", or "auto" to fit their memory and speed. Or experts of every layer per
  // node: "experts:64,192", or "experts"; rank 0 then holds everything else. Or both:
  // "12:64+192,28:100+156", or "groups:2,2" to split the layers between groups of that many nodes and the
  // experts within each group.
  std::string layers = "auto";
  std::string program = {};  // the program's version, which must be the same everywhere
  // Called once, on a separate thread, when a node is lost, with the reason. The model is lost with it: every
  // call that waits for a node throws the same message.
  std::function<void(const LostNode& node)> lost = {};
};

namespace nodes {
class Cluster;
class Roll;
}  // namespace nodes

// MPI waits for ever for a node that stopped before it joined, and does not say for which one. If mpirun
// allows it, joining nodes therefore exchange heartbeats.
class RollCall {
 public:
  RollCall();
  ~RollCall();  // after Nodes has been constructed
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  // Construct it before Nodes, on the same thread, in a process that mpirun started.
  void begin();
  // May be called by another thread: the names of the nodes that have been silent for so long; empty if that
  // cannot be known.
  std::optional<std::vector<std::string>> silent(std::chrono::milliseconds patience) const;

 private:
  std::unique_ptr<nodes::Roll> roll_;
};

class Nodes {
 public:
  // Waits until all nodes have joined. Throws if the program was built without MPI or not started by it.
  explicit Nodes(const NodesOptions& options);
  // For nodes that are connected by other means than MPI.
  Nodes(std::shared_ptr<nodes::Cluster> cluster, const NodesOptions& options);
  ~Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  int rank() const;
  int count() const;
  // For EngineOptions::share of one engine at a time.
  std::shared_ptr<engine::LayerShare> share();
  // On a rank above 0: computes the engine's part until rank 0 no longer needs it.
  void follow(Engine& engine);
  // Called by all nodes instead of loading an engine. Returns the measured nodes and network on rank 0, and
  // nothing on the others. `file` is read to measure disks; empty: disks are not measured.
  NodesSpec measure(const EngineOptions& engine, const std::filesystem::path& file);
  // Tells the others that this node cannot go on.
  void give_up(const std::string& why) noexcept;

 private:
  std::shared_ptr<nodes::Cluster> cluster_;
  NodesOptions options_;
};

}  // namespace sluice
