// --nodes: a model that several machines hold together.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "sluice/engine.h"
#include "sluice/nodes_plan.h"

namespace sluice::cli {

// This process held layers for another one, which has ended.
class Followed : public std::exception {};

// Joins the nodes that mpirun started and loads this one's part of the model. Returns on the node that leads
// alone: the others hold their layers until that one ends, and then throw Followed.
// What goes wrong with `load`, which is given this node's share, is told by the node that leads, and of which
// node it is.
std::shared_ptr<Engine> load_with_nodes(
    const std::string& layers,
    const std::function<std::shared_ptr<Engine>(std::shared_ptr<engine::LayerShare>)>& load);
// The same to measure them all and the network between them; the file that `file` names is read to measure
// their disks.
NodesSpec measure_nodes(const EngineOptions& options, const std::function<std::filesystem::path()>& file);
// Whether this process was started as one that follows.
bool follows_by_mpirun();
// Tells whoever forgot --nodes that the processes mpirun started know nothing of each other.
void say_if_copies_work_alone();
// Before one that follows says what is wrong with its command line: mpirun has ended it by then where the one
// that leads has said the same.
void leave_usage_to_the_leader();

}  // namespace sluice::cli
