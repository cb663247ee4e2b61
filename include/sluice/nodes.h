// A model that several machines hold together, each some layers or experts, with the results of one machine.
//
// All of them run the same program, started by mpirun. Each joins, gives share() to the engine that it loads,
// and those of a rank above 0 then follow(); the one of rank 0 uses its engine as if it had the whole model.
// The traffic is not encrypted: it is for a network that is trusted.
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

// A node that no longer answers, or that said why it cannot.
struct LostNode {
  int rank = 0;
  bool told = false;  // by itself
  std::string sentence;
};

struct NodesOptions {
  // How many layers each node holds: "12,20,8", or "auto" for what suits their memory and speed. Or how many
  // experts of every layer: "experts:64,192", or "experts"; then the node of rank 0 holds everything else. Or
  // both: "12:64+192,28:100+156", or "groups:2,2" where groups of so many nodes share the layers, and the
  // nodes of each the experts of theirs.
  std::string layers = "auto";
  std::string program = {};  // its version: it must be the same everywhere
  // Hears once, on a thread of its own, that a node is lost and why. The model is lost with it: whatever
  // waits for a node throws the same sentence.
  std::function<void(const LostNode& node)> lost = {};
};

namespace nodes {
class Cluster;
class Roll;
}  // namespace nodes

// MPI waits for ever for a node that stopped before it joined, and does not say for which. Where mpirun lets
// them, those that join therefore tell each other that they live.
class RollCall {
 public:
  RollCall();
  ~RollCall();  // once Nodes is made
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  // Called before Nodes is made, by the same thread, of a process that mpirun started.
  void begin();
  // Called by another thread: the names of those of which nothing was heard for so long; nothing where that
  // cannot be known.
  std::optional<std::vector<std::string>> silent(std::chrono::milliseconds patience) const;

 private:
  std::unique_ptr<nodes::Roll> roll_;
};

class Nodes {
 public:
  // Waits until all are there. Throws where the program is built without MPI or was not started by it.
  explicit Nodes(const NodesOptions& options);
  // For nodes that are connected otherwise.
  Nodes(std::shared_ptr<nodes::Cluster> cluster, const NodesOptions& options);
  ~Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  int rank() const;
  int count() const;
  // For EngineOptions::share of one engine at a time.
  std::shared_ptr<engine::LayerShare> share();
  // On a rank above 0: holds the engine's part until the node of rank 0 has no more use for them.
  void follow(Engine& engine);
  // Called by all in place of loading an engine: what the nodes and the network between them are, measured,
  // on the node of rank 0, and nothing on the others. `file` is read to measure disks; empty: they are not.
  NodesSpec measure(const EngineOptions& engine, const std::filesystem::path& file);
  // Tells the others that this node cannot go on.
  void give_up(const std::string& why) noexcept;

 private:
  std::shared_ptr<nodes::Cluster> cluster_;
  NodesOptions options_;
};

}  // namespace sluice
