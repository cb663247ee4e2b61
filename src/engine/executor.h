// The one place that computes: it owns the workspace, the groups of slots with their recorded steps, and the
// one thread that runs them on the engine's backend.
#pragma once

#include "base/integer_cast.h"
#include "engine/forward_pass.h"
#include "engine/job_thread.h"

namespace sluice::engine {

// Slots that can compute in one pass, because their states are in one pool. Shared by its owners.
struct SlotGroup {
  SlotGroup(Core& core, Workspace& workspace, const state::Extent& extent, std::int64_t chunk)
      : pass(core, workspace, extent, chunk), used(to_size(extent.slots)) {}

  ForwardPass pass;
  std::vector<bool> used;  // by slot
};

class Executor {
 public:
  explicit Executor(Core& core);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Runs `job` on the computing thread, after the jobs before it, and waits for it. Nothing else uses the
  // groups meanwhile.
  template <class F>
  auto run(F&& job) {
    return thread_.run(std::forward<F>(job));
  }

  // The same without waiting: the caller continues meanwhile.
  using Started = JobThread::Started;
  Started start(std::function<void()> job) { return Started(thread_, std::move(job)); }

  // A place for one sequence, returned on destruction.
  class Slot {
   public:
    Slot() = default;
    Slot(Executor& executor, std::shared_ptr<SlotGroup> group, std::int32_t number)
        : executor_(&executor), group_(std::move(group)), number_(number) {}
    Slot(Slot&& other) noexcept
        : executor_(std::exchange(other.executor_, nullptr)),
          group_(std::move(other.group_)),
          number_(other.number_) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot();

    ForwardPass& pass() const { return group_->pass; }
    std::int32_t number() const { return number_; }

   private:
    friend class Executor;
    Executor* executor_ = nullptr;
    std::shared_ptr<SlotGroup> group_;
    std::int32_t number_ = 0;
  };
  // Opens a slot for a sequence of up to that many tokens that computes alone, in the group that all such
  // sequences share. The group takes memory as they come and grow.
  Slot open(std::int64_t capacity);
  static state::Extent lone_extent(const Core& core);
  // Opens a free slot of the group.
  Slot open(const std::shared_ptr<SlotGroup>& group, std::int64_t capacity = 0);
  // Creates a group. A `chunk` of 0 means the engine's.
  std::shared_ptr<SlotGroup> reserve(const state::Extent& extent, std::int64_t chunk = 0);

  // Gives another slot of the same group the first `rows` tokens of this one; cache pages are shared, not
  // copied. Recurrent states are those of the last token, so `rows` is the sequence's length.
  void fork(const Slot& from, const Slot& to, std::int64_t rows);

  // Tokens of one sequence, after `past` others.
  struct SlotTokens {
    const Slot* slot = nullptr;
    std::int64_t past = 0;
    std::span<const std::int32_t> ids;
    std::int64_t rows = 1;  // number of last tokens whose logits are wanted
  };
  // Receives the logits of sequence `i`, F32 [rows, vocab], on the computing thread; valid during the call.
  using HearLogits = FunctionRef<void(std::size_t i, std::span<const float> logits)>;
  // Computes prompts of any slots, or one generated token of each, in one pass per group. A sequence's logits
  // do not depend on the others.
  void prefill(std::span<const SlotTokens> prompts, HearLogits hear);
  void decode(std::span<const SlotTokens> tokens, HearLogits hear);

  // Bytes used on the backend besides weights.
  struct Memory {
    std::uint64_t workspace = 0;
    std::uint64_t groups = 0;
    std::uint64_t programs = 0;
  };
  Memory memory();

 private:
  std::shared_ptr<SlotGroup> make_group(const state::Extent& extent, std::int64_t chunk);
  void drop_group(std::unique_ptr<SlotGroup> group) noexcept;
  void close(Slot& slot);
  void run_batches(ops::Phase phase, std::span<const SlotTokens> tokens, HearLogits hear);

  Core& core_;
  Workspace workspace_;
  std::vector<std::weak_ptr<SlotGroup>> groups_;
  std::weak_ptr<SlotGroup> lone_;
  JobThread thread_;  // last, because it uses the others
};

}  // namespace sluice::engine
