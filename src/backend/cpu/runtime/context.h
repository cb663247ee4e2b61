// What a CPU kernel may use: the thread pool and scratch memory that is kept between calls.
#pragma once

#include <cstddef>
#include <vector>

#include "base/thread_pool.h"
#include "sluice/ops/buffer.h"

namespace sluice::backend::cpu {

class Context {
 public:
  Context(int threads, bool exact)
      : pool_(threads), exact_(exact), worker_scratch_(static_cast<std::size_t>(pool_.size())) {}

  ThreadPool& pool() { return pool_; }
  bool exact() const { return exact_; }
  // Uninitialised memory of the calling op, aligned to 64 bytes. It grows to the largest request and stays:
  // after the first tokens a step allocates nothing. The shared block is for the thread that runs the op, a
  // worker's block for that worker; each is valid until the next request for the same block.
  std::byte* shared_scratch(std::size_t bytes) { return grow(shared_scratch_, bytes); }
  std::byte* worker_scratch(int worker, std::size_t bytes) {
    return grow(worker_scratch_[static_cast<std::size_t>(worker)], bytes);
  }

 private:
  static std::byte* grow(ops::Buffer& buffer, std::size_t bytes);

  ThreadPool pool_;
  bool exact_;
  ops::Buffer shared_scratch_;
  std::vector<ops::Buffer> worker_scratch_;
};

// One file an op, each defining run<Op>.
template <class Op>
void run(Context& context, const Op& op);

}  // namespace sluice::backend::cpu
