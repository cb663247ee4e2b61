// Host memory for cached prompts: pinned if a device copies from and to it, allocated in large pieces and
// reused, because new memory costs more than copying into it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "sluice/ops/backend.h"

namespace sluice::scheduler::prefix {

// Bytes in host memory, reused once no one holds them.
using SavedState = std::shared_ptr<const std::span<const std::byte>>;

// A part of such bytes.
SavedState part_of(const SavedState& whole, std::size_t begin, std::size_t bytes);

// Callable from any thread. The memory it returns may outlive it.
class HostMemory {
 public:
  // Unused memory is kept for reuse as long as the total is at most `kept` bytes. Pieces come from
  // `allocate`.
  using Allocate = std::function<ops::Buffer(std::size_t bytes)>;
  // A thread allocates `ahead` bytes more than are in use before they are requested: pinning takes longer
  // than a step, and computation should not wait for it.
  struct Options {
    std::size_t kept = 0;
    std::size_t ahead = 0;
  };
  HostMemory(Allocate allocate, const Options& options);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // Returns that many bytes, filled by `fill`. Throws std::bad_alloc if there is no memory.
  SavedState make(std::size_t bytes, FunctionRef<void(std::span<std::byte> to)> fill);
  // Bytes of all pieces, used or not.
  std::size_t bytes() const;

 private:
  struct Pieces;
  std::shared_ptr<Pieces> pieces_;
  std::thread prepares_;
};

}  // namespace sluice::scheduler::prefix
