// --nodes: a model shared by several machines.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "sluice/engine.h"
#include "sluice/nodes_plan.h"

namespace sluice::cli::options {

// This process held layers for another one, which has ended.
class Followed : public std::exception {};

// Joins the nodes that mpirun started and loads this node's part of the model. Returns only on the leading
// node: the others hold their layers until it ends, and then throw Followed. Errors of `load`, which is
// passed this node's share, are reported by the leading node with the name of the node.
std::shared_ptr<Engine> load_with_nodes(
    const std::string& layers,
    const std::function<std::shared_ptr<Engine>(std::shared_ptr<engine::LayerShare>)>& load);
// The same to measure all nodes and the network between them; the file that `file` returns is read to measure
// their disks.
NodesSpec measure_nodes(const EngineOptions& options, const std::function<std::filesystem::path()>& file);
// Whether this process was started by mpirun as a follower.
bool follows_by_mpirun();
// Warns users who forgot --nodes that processes started by mpirun work independently.
void say_if_copies_work_alone();
// Called before a follower reports a wrong command line: waits, because mpirun ends it once the leading node
// has reported the same.
void leave_usage_to_the_leader();

}  // namespace sluice::cli::options
