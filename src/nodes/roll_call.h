// Who is there while MPI still waits for all, and does not say for whom.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::nodes {

// The part of one node. Calls of the one that MPI starts by may wait for ever, so that whoever asks is
// another thread.
class Roll {
 public:
  virtual ~Roll() = default;
  // Called before MPI begins, by the thread that begins it.
  virtual void begin() = 0;
  // As RollCall::silent().
  virtual std::optional<std::vector<std::string>> silent(std::chrono::milliseconds patience) const = 0;
};

std::unique_ptr<Roll> make_roll();

}  // namespace sluice::nodes
