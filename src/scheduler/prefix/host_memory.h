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

namespace sluice::scheduler {

// Bytes of the host's memory, which is used for others when nobody holds them.
using SavedState = std::shared_ptr<const std::span<const std::byte>>;

// Some of them.
SavedState part_of(const SavedState& whole, std::size_t begin, std::size_t bytes);

// From any thread. What it gave may outlive it.
class HostMemory {
 public:
  // What nobody uses stays for others, as long as there are no more than `kept` bytes in all. Pieces come
  // from `allocate`.
  using Allocate = std::function<ops::Buffer(std::size_t bytes)>;
  // So many bytes beyond those in use are allocated by a thread of its own before anybody asks for them:
  // pinning takes longer than a step, and whoever computes should not wait for it.
  struct Options {
    std::size_t kept = 0;
    std::size_t ahead = 0;
  };
  HostMemory(Allocate allocate, const Options& options);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // So many bytes, as `fill` writes them. Throws std::bad_alloc where there is no memory.
  SavedState make(std::size_t bytes, FunctionRef<void(std::span<std::byte> to)> fill);
  // In pieces, used or not.
  std::size_t bytes() const;

 private:
  struct Pieces;
  std::shared_ptr<Pieces> pieces_;
  std::thread prepares_;
};

}  // namespace sluice::scheduler
