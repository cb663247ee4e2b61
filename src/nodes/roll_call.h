// Who is there while MPI still waits for all, and does not say for whom.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace sluice::nodes {

// Called by all that wait, each on a thread of its own: those that did not call it within `patience`, or
// none where that cannot be known.
std::vector<std::string> missing_from_roll_call(std::chrono::milliseconds patience);

}  // namespace sluice::nodes
