// Where sequences run: slots of one group, whose caches lie in pages that sequences take as they grow.
#pragma once

#include "scheduler/sequence.h"

namespace sluice::scheduler {

class Places {
 public:
  Places(engine::Executor& executor, std::int64_t slots, std::int64_t capacity, std::int64_t pages);

  engine::ForwardPass& pass() const { return group_->pass; }
  std::int64_t slots() const { return group_->pass.slots(); }
  std::int64_t pages() const { return group_->pass.pool().extent().pages; }
  std::int64_t free_pages() const { return group_->pass.pool().free_pages(); }
  bool slot_free() const { return taken_ < slots(); }

  // Pages that a sequence in a slot needs for so many more tokens.
  std::int64_t missing_pages(const Sequence& sequence, std::int64_t added) const;

  // Gives the sequence a slot, and what was saved of it back.
  void open(Sequence& sequence);
  void close(Sequence& sequence);
  // Takes the slot and the pages away and keeps in the host's memory what is in them.
  void suspend(Sequence& sequence);

 private:
  engine::Executor& executor_;
  std::shared_ptr<engine::SlotGroup> group_;
  std::int64_t taken_ = 0;
};

}  // namespace sluice::scheduler
