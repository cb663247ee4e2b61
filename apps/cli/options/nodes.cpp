#include "options/nodes.h"

#include <build_info.h>  // made by the build
#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "command.h"
#include "sluice/error.h"
#include "sluice/nodes.h"
#include "terminal/terminal.h"

namespace sluice::cli {

namespace {

// One sentence for all: from the node that leads, or from the others where it is the one that is lost. mpirun
// ends them all as soon as one has ended, so those that say nothing leave it time to speak. Where a machine
// is cut off, all leave mpirun the time to notice: once it is ending them, it no longer does, and waits for
// minutes.
[[noreturn]] void end_with(const LostNode& node, bool leads) {
  using namespace std::chrono_literals;
  if (leads || (node.rank == 0 && !node.told)) {
    std::fflush(stdout);
    fmt::print(stderr, "{} {}\n", styled(Style::red, "sluice:", stderr), printable(node.sentence));
    std::fflush(stderr);
    if (!node.told) std::this_thread::sleep_for(2500ms);
  } else {
    std::this_thread::sleep_for(node.told ? 1500ms : 3000ms);
  }
  std::_Exit(1);
}

// MPI waits for ever for a node that stopped before it joined.
class JoinLimit {
 public:
  JoinLimit()
      : thread_([this] {
          std::unique_lock lock(mutex_);
          if (joined_.wait_for(lock, std::chrono::seconds(kSeconds), [this] { return done_; })) return;
          fmt::print(stderr, "{} a node has not come within {} s: it stopped, or cannot be reached\n",
                     styled(Style::red, "sluice:", stderr), kSeconds);
          std::fflush(stderr);
          std::_Exit(1);
        }) {}
  ~JoinLimit() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    joined_.notify_all();
    thread_.join();
  }
  JoinLimit(const JoinLimit&) = delete;
  JoinLimit& operator=(const JoinLimit&) = delete;

 private:
  static constexpr int kSeconds = 60;
  std::mutex mutex_;
  std::condition_variable joined_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

std::unique_ptr<Nodes> join(const NodesOptions& options) {
  const JoinLimit limit;
  return std::make_unique<Nodes>(options);
}

}  // namespace

bool follows_by_mpirun() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank != nullptr && std::string(rank) != "0";
}

std::shared_ptr<Engine> load_with_nodes(const std::filesystem::path& folder, EngineOptions options,
                                        const std::string& layers) {
  const bool leads = !follows_by_mpirun();
  const std::unique_ptr<Nodes> joined =
      join({.layers = layers,
            .program = fmt::format("{} ({})", kVersion, kCommit),
            .lost = [leads](const LostNode& node) { end_with(node, leads); }});
  Nodes& nodes = *joined;
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
