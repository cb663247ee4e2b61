#include "options/nodes.h"

#include <build_info.h>  // made by the build
#include <fmt/core.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
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

using namespace std::chrono_literals;

// mpirun ends all as soon as one has ended, so whoever has nothing to say waits until the one that leads has
// said it and ended. It takes that one longer where the machine is busy; past the limit mpirun itself is
// gone.
void leave_the_word_to_the_leader() {
  constexpr auto kLimit = 8s;
  std::this_thread::sleep_for(kLimit);
}

// One sentence for all: from the node that leads, or from the others where it is the one that is lost. Where
// a machine is cut off, all leave mpirun the time to notice: once it is ending them, it no longer does, and
// waits for minutes.
[[noreturn]] void end_with(const LostNode& node, bool leads) {
  if (leads || (node.rank == 0 && !node.told)) {
    std::fflush(stdout);
    fmt::print(stderr, "{} {}\n", styled(Style::red, "sluice:", stderr), printable(node.sentence));
    std::fflush(stderr);
    if (!node.told) std::this_thread::sleep_for(1500ms);
  } else if (node.told) {
    leave_the_word_to_the_leader();
  } else {
    std::this_thread::sleep_for(2000ms);
  }
  std::_Exit(1);
}

// MPI waits for ever for a node that stopped before it joined. The node that leads says for which, the others
// where it is that one or nobody knows. Here, too, mpirun has the time to notice a machine that is cut off.
// Nodes that are slow to join, but live, are waited for.
class JoinLimit {
 public:
  explicit JoinLimit(bool leads) : thread_([this, leads] { watch(leads); }) {
    if (std::getenv("PMIX_NAMESPACE") != nullptr) roll_.begin();  // else there is nobody to hear of
  }
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
  static constexpr auto kSilence = 6500ms;
  static constexpr auto kUnheard = 8000ms;  // where nobody can hear of the others
  static constexpr auto kMost = 60s;
  static constexpr auto kNotice = 1500ms;

  void watch(bool leads) {
    const auto start = std::chrono::steady_clock::now();
    while (!joined_within(100ms)) {
      const auto waited = std::chrono::steady_clock::now() - start;
      const auto silent = roll_.silent(leads ? kSilence : kSilence + kNotice);
      const bool unknown = !silent || silent->empty();
      if (unknown && waited < (silent ? kMost : kUnheard)) continue;
      if (leads || unknown || silent->front().starts_with("node 0 ")) {
        fmt::print(stderr, "{} {} joined within {:.0f} s: stopped, or out of reach\n",
                   styled(Style::red, "sluice:", stderr),
                   printable(unknown              ? "a node has not"
                             : silent->size() > 1 ? fmt::format("{} have not", fmt::join(*silent, ", "))
                                                  : silent->front() + " has not"),
                   std::chrono::duration<double>(waited).count());
        std::fflush(stderr);
      }
      if (leads) std::this_thread::sleep_for(kNotice);
      std::_Exit(1);
    }
  }

  bool joined_within(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    return joined_.wait_for(lock, most, [this] { return done_; });
  }

  RollCall roll_;
  std::mutex mutex_;
  std::condition_variable joined_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

std::unique_ptr<Nodes> join(const NodesOptions& options, bool leads) {
  // MPI writes to connections whose other end was killed: an error of its own, and not the end of this
  // process before it has said which node is lost.
  std::signal(SIGPIPE, SIG_IGN);
  const JoinLimit limit(leads);
  try {
    return std::make_unique<Nodes>(options);
  } catch (const Error&) {  // all have the same to say, and mpirun ends them with the first
    if (!leads) std::this_thread::sleep_for(700ms);
    throw;
  }
}

// Joins the others and does `work` with them, which returns on the node that leads alone.
template <class Work>
auto join_and(const std::string& layers, bool leads, const Work& work) {
  const std::unique_ptr<Nodes> nodes =
      join({.layers = layers,
            .program = fmt::format("{} ({})", kVersion, kCommit),
            .lost = [leads](const LostNode& node) { end_with(node, leads); }},
           leads);
  try {
    return work(*nodes);
  } catch (const Followed&) {
    throw;
  } catch (const std::exception& error) {
    // What is wrong everywhere, the one that leads finds out by itself, and tells it as nobody's.
    if (!leads) std::this_thread::sleep_for(500ms);
    nodes->give_up(error.what());
    if (leads) throw;
    throw Failed();
  }
}

// The same; who follows leaves the word to the one that leads.
template <class Work>
auto with_others(const std::string& layers, const Work& work) {
  const bool leads = !follows_by_mpirun();
  try {
    return join_and(layers, leads, [&](Nodes& nodes) { return work(nodes, leads); });
  } catch (const Failed&) {  // once MPI has been left, which all do together
    leave_the_word_to_the_leader();
    throw;
  }
}

}  // namespace

bool follows_by_mpirun() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank != nullptr && std::string(rank) != "0";
}

void say_if_copies_work_alone() {
  const char* count = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (count == nullptr || std::string(count) == "1" || follows_by_mpirun()) return;
  fmt::print(stderr,
             "{} mpirun started {} processes, which work alone; with --nodes auto they share the model\n",
             styled(Style::dim, "note:", stderr), printable(count));
}

// It takes mpirun some seconds to end those that have not joined, and less than others wait for them.
void leave_usage_to_the_leader() {
  if (follows_by_mpirun()) std::this_thread::sleep_for(4500ms);
}

std::shared_ptr<Engine> load_with_nodes(
    const std::string& layers,
    const std::function<std::shared_ptr<Engine>(std::shared_ptr<engine::LayerShare>)>& load) {
  return with_others(layers, [&](Nodes& nodes, bool leads) {
    std::shared_ptr<Engine> engine = load(nodes.share());
    if (leads) return engine;
    nodes.follow(*engine);
    throw Followed();
  });
}

NodesSpec measure_nodes(const EngineOptions& options, const std::function<std::filesystem::path()>& file) {
  return with_others("auto", [&](Nodes& nodes, bool leads) {
    NodesSpec spec = nodes.measure(options, file());
    if (leads) return spec;
    throw Followed();
  });
}

}  // namespace sluice::cli
