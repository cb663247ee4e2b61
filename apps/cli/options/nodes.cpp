#include "options/nodes.h"

#include <build_info.h>  // made by the build
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "command.h"
#include "sluice/error.h"
#include "sluice/nodes.h"
#include "terminal/terminal.h"

namespace sluice::cli {

namespace {

// One sentence for all: from the node that leads, or from the others where it is the one that is lost. mpirun
// ends them all as soon as one has ended, so those that say nothing leave it time to speak.
[[noreturn]] void end_with(const LostNode& node, bool leads) {
  using namespace std::chrono_literals;
  if (leads || (node.rank == 0 && !node.told)) {
    std::fflush(stdout);
    fmt::print(stderr, "{} {}\n", styled(Style::red, "sluice:", stderr), printable(node.sentence));
    std::fflush(stderr);
  } else {
    std::this_thread::sleep_for(1500ms);
  }
  std::_Exit(1);
}

}  // namespace

bool follows_by_mpirun() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank != nullptr && std::string(rank) != "0";
}

std::shared_ptr<Engine> load_with_nodes(const std::filesystem::path& folder, EngineOptions options,
                                        const std::string& layers) {
  const bool leads = !follows_by_mpirun();
  Nodes nodes({.layers = layers,
               .program = fmt::format("{} ({})", kVersion, kCommit),
               .lost = [leads](const LostNode& node) { end_with(node, leads); }});
  try {
    options.share = nodes.share();
    std::shared_ptr<Engine> engine = Engine::load(folder, options);
    options.share = nullptr;
    if (leads) return engine;
    nodes.follow(*engine);
  } catch (const std::exception& error) {
    options.share = nullptr;
    nodes.give_up(error.what());
    if (leads) throw;
    throw Failed();
  }
  throw Followed();
}

}  // namespace sluice::cli
