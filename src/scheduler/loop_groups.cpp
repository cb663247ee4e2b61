// Steps with layers on several nodes: each node works on a group of sequences of its own.
#include <algorithm>

#include "scheduler/loop.h"

namespace sluice::scheduler {

// The sequences that have waited longest, as many as make all groups equal.
std::vector<SequencePtr> Loop::next_group() const {
  std::vector<SequencePtr> ready = decoding();
  const std::int64_t most = (std::ssize(ready) + passes_.stages() - 1) / passes_.stages();
  std::erase_if(ready, [](const SequencePtr& one) { return one->underway; });
  std::stable_sort(ready.begin(), ready.end(),
                   [](const SequencePtr& a, const SequencePtr& b) { return a->departed < b->departed; });
  if (std::ssize(ready) > most) ready.resize(to_size(most));
  return ready;
}

void Loop::depart() {
  while (passes_.underway() < passes_.stages()) {
    const std::vector<SequencePtr> group = with_pages([this] { return next_group(); });
    if (group.empty()) return;
    try {
      passes_.depart(group);
    } catch (...) {
      for (const SequencePtr& one : group) finish(one, std::current_exception());
    }
  }
}

std::int64_t Loop::arrive() {
  const std::vector<SequencePtr> group = passes_.next_to_arrive();
  try {
    take(passes_.arrive());
  } catch (...) {
    for (const SequencePtr& one : group) finish(one, std::current_exception());
  }
  const std::lock_guard lock(mutex_);
  ++counts_.decode_steps;
  return std::ssize(group);
}

bool Loop::step_in_groups() {
  depart();
  if (passes_.underway() == 0) {
    stepped_.reset();
    return false;
  }
  const auto start = Clock::now();
  for (std::int64_t due = std::ssize(decoding()); due > 0 && passes_.underway() > 0;) {
    due -= arrive();
    sweep();
    depart();
  }
  budget_.decoded(seconds_since(start));
  measure_turn();
  return true;
}

}  // namespace sluice::scheduler
