// By PMIx, through which mpirun's processes find each other: each publishes that it is there, and looks up
// the others.
#include "nodes/roll_call.h"

#include <fmt/core.h>
#include <pmix.h>

#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace sluice::nodes {

namespace {

using namespace std::chrono_literals;

std::string key_of(pmix_rank_t rank) {
  return fmt::format("sluice.here.{}", rank);
}

// Of what PMIx knows without asking anyone.
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

// Calls of PMIx may wait for ever for a daemon that is cut off, so that a thread of its own makes them, which
// outlives whoever waits for the result.
class RollCall {
 public:
  void run() {
    if (PMIx_Initialized() == 0) return;  // not even MPI has come so far
    pmix_proc_t own;
    if (PMIx_Init(&own, nullptr, 0) != PMIX_SUCCESS) return;
    if (publish(own.rank) && count(own)) look_for_others();
    PMIx_Finalize(nullptr, 0);
  }
  std::vector<std::string> end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    std::vector<std::string> missing;
    for (const auto& [rank, name] : missing_) missing.push_back(name);
    return missing;
  }

 private:
  bool publish(pmix_rank_t rank) {
    const std::string key = key_of(rank);
    pmix_info_t here;
    PMIX_INFO_LOAD(&here, key.c_str(), "here", PMIX_STRING);
    const bool published = PMIx_Publish(&here, 1) == PMIX_SUCCESS;
    PMIX_INFO_DESTRUCT(&here);
    return published;
  }

  bool count(const pmix_proc_t& own) {
    pmix_proc_t proc = own;
    std::uint32_t size = 0;
    proc.rank = PMIX_RANK_WILDCARD;
    if (!read_known(proc, PMIX_JOB_SIZE, [&](const pmix_value_t& value) { size = value.data.uint32; }))
      return false;
    const std::lock_guard lock(mutex_);
    for (proc.rank = 0; proc.rank < size; ++proc.rank) {
      if (proc.rank == own.rank) continue;
      std::string name = fmt::format("node {}", proc.rank);
      read_known(proc, PMIX_HOSTNAME, [&](const pmix_value_t& value) {
        if (value.type == PMIX_STRING) name += fmt::format(" ({})", value.data.string);
      });
      missing_[proc.rank] = name;
    }
    return true;
  }

  void look_for_others() {
    for (;;) {
      std::vector<pmix_rank_t> unseen;
      {
        const std::lock_guard lock(mutex_);
        if (ended_ || missing_.empty()) return;
        for (const auto& [rank, name] : missing_) unseen.push_back(rank);
      }
      for (const pmix_rank_t rank : unseen) {
        pmix_pdata_t found;
        PMIX_PDATA_CONSTRUCT(&found);
        PMIX_LOAD_KEY(found.key, key_of(rank).c_str());
        const bool seen = PMIx_Lookup(&found, 1, nullptr, 0) == PMIX_SUCCESS;
        PMIX_PDATA_DESTRUCT(&found);
        const std::lock_guard lock(mutex_);
        if (seen) missing_.erase(rank);
      }
      std::this_thread::sleep_for(50ms);
    }
  }

  std::mutex mutex_;
  bool ended_ = false;
  std::map<pmix_rank_t, std::string> missing_;
};

}  // namespace

std::vector<std::string> missing_from_roll_call(std::chrono::milliseconds patience) {
  const auto call = std::make_shared<RollCall>();
  std::thread([call] { call->run(); }).detach();
  std::this_thread::sleep_for(patience);
  return call->end();
}

}  // namespace sluice::nodes
