// Where sequences run: slots of one group, whose caches lie in pages that sequences take as they grow. Pages
// that no sequence needs remember prompts.
#pragma once

#include "scheduler/prefix/prefix_tree.h"
#include "scheduler/sequence.h"

namespace sluice::scheduler {

// A copy that a pass makes of a sequence's states, behind so many of its tokens.
struct StateCopy {
  std::int64_t rows = 0;
  SnapshotPlace place;
};

class Places {
 public:
  Places(engine::Core& core, const SchedulerOptions& settled);

  engine::ForwardPass& pass() const { return group_->pass; }
  std::int64_t slots() const { return group_->pass.slots(); }
  std::int64_t pages() const { return group_->pass.pool().extent().pages; }
  std::int64_t free_pages() const { return group_->pass.pool().free_pages(); }
  // Makes so many pages free, if need be of those that remember prompts.
  bool make_free(std::int64_t pages);
  // Where a sequence is about to write into a page that remembers its prompt, forgets that rather than have
  // it copied; false: there is no such page.
  bool forget_shared(const Sequence& sequence);
  // That could be made free: of prompts that are remembered and that nobody continues now.
  std::int64_t spare_pages() const { return tree_ ? tree_->spare_pages() : 0; }
  std::int64_t available_pages() const { return free_pages() + spare_pages(); }
  std::uint64_t host_bytes() const { return tree_ ? tree_->host_bytes() : 0; }
  std::uint64_t disk_bytes() const { return disk_ ? disk_->bytes() : 0; }
  bool slot_free() const { return taken_ < slots(); }

  // Pages that a sequence in a slot needs for so many more tokens.
  std::int64_t missing_pages(const Sequence& sequence, std::int64_t added) const;

  // Gives the sequence a slot, and what was saved of it or is remembered of its prompt.
  void open(Sequence& sequence);
  // Looks again for what is remembered, of one that has read nothing.
  void recall(Sequence& sequence);
  // Puts back what more of its prompt is in the host's memory, or begins to read what is in files, where that
  // is sooner done than computing so many tokens in the time that `compute_seconds` says; 0: it does not
  // know.
  void fetch(Sequence& sequence, const std::function<double(std::int64_t tokens)>& compute_seconds);
  // Once that is read: the sequence goes on behind it, or where it was if the files were of no use.
  void take_fetched(Sequence& sequence);
  // Forgets all prompts, here and in files.
  void forget_all();
  bool remembers() const { return tree_.has_value(); }
  // States that a pass can copy on its way, and places for so many of them, rising: others make room.
  std::int64_t copies() const { return pass().pool().extent().snapshots; }
  std::vector<SnapshotPlace> take_snapshots(std::int64_t count);
  // Keeps what a sequence had read when this copy was made.
  void remember(const Sequence& sequence, const StateCopy& copy);
  // Keeps what a sequence has read so far, up to a multiple of 64; where there are states that is all of it.
  void remember(const Sequence& sequence);
  // Where answers are gone on from: keeps, after a step, what one has computed up to the end of a block, and
  // remembers that when it is done.
  void follow_answer(Sequence& sequence);
  void remember_answer(const Sequence& sequence);
  std::vector<RememberedPrefix> remembered(const Salt& salt, std::size_t most) const;
  void close(Sequence& sequence);
  // Takes the slot and the pages away and keeps in the host's memory what is in them.
  void suspend(Sequence& sequence);

 private:
  class Pages;

  void open_disk(engine::Core& core, const SchedulerOptions& settled);
  SavedState save_state(std::int64_t slot, std::int64_t rows);
  KeptState copy_state(const Sequence& sequence, std::int64_t rows);
  void keep(const Sequence& sequence, std::int64_t rows, KeptState state);
  void store(const Sequence& sequence, std::int64_t rows, const SavedState& state);
  void load_state(const Sequence& sequence, std::int64_t rows, const KeptState& state);
  // Rows behind the first `paged` ones that come from elsewhere, and the states behind all.
  struct Loaded {
    std::int64_t paged = 0;
    std::int64_t rows = 0;
    std::int64_t exact = 0;
    std::vector<SavedState> parts = {};
    KeptState state = {};
  };
  // False: there is no room for them, and the sequence is where it was.
  bool load(Sequence& sequence, const Loaded& from);
  void give_up(const Sequence& sequence);
  double seconds_to_load(std::int64_t rows) const;
  static void go_on(Sequence& sequence, std::int64_t rows, std::int64_t exact);

  engine::Executor& executor_;
  std::shared_ptr<engine::SlotGroup> group_;
  bool states_;
  std::vector<std::int32_t> message_ends_;  // tokens that end a message
  std::int64_t spacing_;
  bool reuse_decoded_;
  engine::Budget::Claim memory_claim_;
  HostMemory memory_;
  std::unique_ptr<PageOwner> owner_;
  std::optional<PrefixTree> tree_;
  std::optional<DiskStore> disk_;
  CostLine loading_;  // seconds over rows
  std::int64_t taken_ = 0;
};

}  // namespace sluice::scheduler
