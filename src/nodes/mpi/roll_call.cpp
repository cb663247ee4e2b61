// The roll call by PMIx, the directory through which mpirun's processes find each other: each publishes
// increasing numbers as long as it lives, and looks up those of the others.
#include "nodes/roll_call.h"

#include <fmt/core.h>
#include <pmix.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace sluice::nodes {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string key_of(pmix_rank_t rank, int beat) {
  return fmt::format("sluice.lives.{}.{}", rank, beat);
}

// Reads what PMIx knows locally, without a request to its daemon.
template <class F>
bool read_known(const pmix_proc_t& of, const char* key, F&& read) {
  const bool here = true;
  pmix_info_t optional;
  PMIX_INFO_LOAD(&optional, PMIX_OPTIONAL, &here, PMIX_BOOL);
  pmix_value_t* value = nullptr;
  if (PMIx_Get(&of, key, &optional, 1, &value) != PMIX_SUCCESS || value == nullptr) return false;
  read(*value);
  PMIX_VALUE_RELEASE(value);
  return true;
}

bool publish(const std::string& key) {
  pmix_info_t beat;
  PMIX_INFO_LOAD(&beat, key.c_str(), "", PMIX_STRING);
  const bool published = PMIx_Publish(&beat, 1) == PMIX_SUCCESS;
  PMIX_INFO_DESTRUCT(&beat);
  return published;
}

bool is_published(const std::string& key) {
  pmix_pdata_t found;
  PMIX_PDATA_CONSTRUCT(&found);
  PMIX_LOAD_KEY(found.key, key.c_str());
  const bool seen = PMIx_Lookup(&found, 1, nullptr, 0) == PMIX_SUCCESS;
  PMIX_PDATA_DESTRUCT(&found);
  return seen;
}

// PMIx calls may block forever if a daemon is cut off, so they run on two threads that may outlive the object
// that waits: one publishes and one looks up, because publishing takes seconds on busy machines.
class Beats {
 public:
  explicit Beats(const pmix_proc_t& own) : own_(own) {}

  void run() {
    // Most nodes join before this matters.
    if (!wait(1s) && find_others()) {
      std::thread listening([this] {
        do listen();
        while (!wait(500ms));
      });
      for (int beat = 0; tell(beat) && !wait(500ms); ++beat) {
      }
      listening.join();
    }
    PMIx_Finalize(nullptr, 0);
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  // Returns whether the thread has ended in a time that is enough unless a call blocks forever. MPI can only
  // be finalized in order after that.
  bool end() {
    std::unique_lock lock(mutex_);
    wanted_ = false;
    changed_.notify_all();
    return changed_.wait_for(lock, 20s, [this] { return ended_; });
  }
  std::optional<std::vector<std::string>> silent(std::chrono::milliseconds patience) const {
    const std::lock_guard lock(mutex_);
    if (others_.empty()) return std::nullopt;
    std::vector<std::string> names;
    for (const auto& [rank, other] : others_)
      if (Clock::now() - other.heard > patience + slowness()) names.push_back(other.name);
    return names;
  }

 private:
  struct Other {
    std::string name;
    Clock::time_point heard;
    int next = 0;  // the next number it will publish
  };

  bool wait(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [this] { return !wanted_; });
  }

  bool tell(int beat) {
    {
      const std::lock_guard lock(mutex_);
      telling_since_ = Clock::now();
    }
    const bool told = publish(key_of(own_.rank, beat));
    const std::lock_guard lock(mutex_);
    slowest_ = std::max(slowest_, Clock::now() - *telling_since_);
    telling_since_.reset();
    return told;
  }

  // By how much publishing takes this node longer than any patience allows for, and so perhaps the others.
  // Next to mpirun a slow call ends eventually; on other machines there may be no daemon left to answer.
  Clock::duration slowness() const {
    constexpr auto kAllowed = 2s;
    Clock::duration takes = slowest_;
    if (own_.rank == 0 && telling_since_) takes = std::max(takes, Clock::now() - *telling_since_);
    return std::max(Clock::duration::zero(), takes - kAllowed);
  }

  bool find_others() {
    pmix_proc_t proc = own_;
    std::uint32_t size = 0;
    proc.rank = PMIX_RANK_WILDCARD;
    if (!read_known(proc, PMIX_JOB_SIZE, [&](const pmix_value_t& value) { size = value.data.uint32; }))
      return false;
    std::map<pmix_rank_t, Other> others;
    for (proc.rank = 0; proc.rank < size; ++proc.rank) {
      if (proc.rank == own_.rank) continue;
      Other& other = others[proc.rank];
      other.name = fmt::format("node {}", proc.rank);
      other.heard = begun_;
      read_known(proc, PMIX_HOSTNAME, [&](const pmix_value_t& value) {
        if (value.type == PMIX_STRING) other.name += fmt::format(" ({})", value.data.string);
      });
    }
    const std::lock_guard lock(mutex_);
    others_ = std::move(others);
    return true;
  }

  // Several numbers since the last look count as one sign of life.
  void listen() {
    for (auto& [rank, other] : others_) {
      bool heard = false;
      for (; is_published(key_of(rank, other.next)); ++other.next) heard = true;
      const std::lock_guard lock(mutex_);
      if (heard) other.heard = Clock::now();
    }
  }

  pmix_proc_t own_;
  Clock::time_point begun_ = Clock::now();
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = true;
  bool ended_ = false;
  std::optional<Clock::time_point> telling_since_;
  Clock::duration slowest_{};            // longest publish call
  std::map<pmix_rank_t, Other> others_;  // the set of ranks is fixed once known
};

class PmixRoll final : public Roll {
 public:
  ~PmixRoll() override {
    const std::shared_ptr<Beats> beats = this->beats();
    if (!beats) return;
    beats->end() ? thread_.join() : thread_.detach();
  }
  // MPI also initialises PMIx, which does not allow concurrent initialisation.
  void begin() override {
    pmix_proc_t own;
    if (PMIx_Init(&own, nullptr, 0) != PMIX_SUCCESS) return;
    const auto beats = std::make_shared<Beats>(own);
    thread_ = std::thread([beats] { beats->run(); });
    const std::lock_guard lock(mutex_);
    beats_ = beats;
  }
  std::optional<std::vector<std::string>> silent(std::chrono::milliseconds patience) const override {
    const std::shared_ptr<Beats> beats = this->beats();
    if (!beats) return std::nullopt;
    return beats->silent(patience);
  }

 private:
  std::shared_ptr<Beats> beats() const {
    const std::lock_guard lock(mutex_);
    return beats_;
  }

  mutable std::mutex mutex_;
  std::shared_ptr<Beats> beats_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Roll> make_roll() {
  return std::make_unique<PmixRoll>();
}

}  // namespace sluice::nodes
