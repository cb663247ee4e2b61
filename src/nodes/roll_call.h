// Finds out which nodes are missing while MPI waits for all of them without saying for which.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::nodes {

// One node's part. Calls on the thread that starts MPI may block forever, so silent() is called on another.
class Roll {
 public:
  virtual ~Roll() = default;
  // Called before MPI starts, on the thread that starts it.
  virtual void begin() = 0;
  // As RollCall::silent().
  virtual std::optional<std::vector<std::string>> silent(std::chrono::milliseconds patience) const = 0;
};

std::unique_ptr<Roll> make_roll();

}  // namespace sluice::nodes
