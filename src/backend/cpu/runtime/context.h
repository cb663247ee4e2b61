// What a CPU kernel may use: the thread pool, and scratch memory that is kept between calls.
#pragma once

#include <hwy/targets.h>

#include <cstddef>
#include <vector>

#include "backend/cpu/runtime/isa.h"
#include "base/integer_cast.h"
#include "base/thread_pool.h"
#include "sluice/ops/buffer.h"

namespace sluice::backend::cpu {

class Context {
 public:
  Context(int threads, bool exact, Isa isa)
      : pool_(threads), exact_(exact), isa_(isa), worker_scratch_(to_size(pool_.size())) {
    target_.Update(highway_targets(isa));
  }

  ThreadPool& pool() { return pool_; }
  bool exact() const { return exact_; }
  Isa isa() const { return isa_; }
  const hwy::ChosenTarget& target() const { return target_; }
  // Uninitialised memory for the calling op, aligned to 64 bytes. It grows to the largest request and is
  // kept, so after the first tokens a step allocates nothing. The shared block is for the thread that runs
  // the op, a worker's block for that worker; each is valid until the same block is requested again.
  std::byte* shared_scratch(std::size_t bytes) { return grow(shared_scratch_, bytes); }
  std::byte* worker_scratch(int worker, std::size_t bytes) { return grow(worker_scratch_[worker], bytes); }

 private:
  static std::byte* grow(ops::Buffer& buffer, std::size_t bytes);

  ThreadPool pool_;
  bool exact_;
  Isa isa_;
  hwy::ChosenTarget target_;
  ops::Buffer shared_scratch_;
  std::vector<ops::Buffer> worker_scratch_;
};

// The kernel for the context's instruction set, as HWY_DYNAMIC_DISPATCH gives the one for the best.
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
#define SLUICE_DISPATCH(context, function) ((void)(context), HWY_STATIC_DISPATCH(function))
#else
#define SLUICE_DISPATCH(context, function) (*(HWY_DISPATCH_TABLE(function)[(context).target().GetIndex()]))
#endif

// Each op has a file that defines run<Op>.
template <class Op>
void run(Context& context, const Op& op);

}  // namespace sluice::backend::cpu
