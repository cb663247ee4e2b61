// Where sequences run: slots of one group with paged caches, of which sequences take pages as they grow.
// Pages that no sequence needs hold cached prompts.
#pragma once

#include "scheduler/prefix/prefix_tree.h"
#include "scheduler/sequence.h"

namespace sluice::scheduler {

// A copy that a pass makes of a sequence's states, after that many of its tokens.
struct StateCopy {
  std::int64_t rows = 0;
  prefix::SnapshotPlace place;
};

class Places {
 public:
  Places(engine::Core& core, const SchedulerOptions& settled);

  engine::ForwardPass& pass() const { return group_->pass; }
  std::int64_t slots() const { return group_->pass.slots(); }
  std::int64_t pages() const { return group_->pass.pool().extent().pages; }
  std::int64_t free_pages() const { return group_->pass.pool().free_pages(); }
  // Frees that many pages, if necessary pages of cached prompts.
  bool make_free(std::int64_t pages);
  // If a sequence is about to write into a page of its cached prompt, evicts that rather than copy the page;
  // returns false if there is no such page.
  bool forget_shared(const Sequence& sequence);
  // Pages that could be freed: those of cached prompts that no sequence uses now.
  std::int64_t spare_pages() const { return tree_ ? tree_->spare_pages() : 0; }
  std::int64_t available_pages() const { return free_pages() + spare_pages(); }
  std::uint64_t host_bytes() const { return tree_ ? tree_->host_bytes() : 0; }
  std::uint64_t disk_bytes() const { return disk_ ? disk_->bytes() : 0; }
  bool slot_free() const { return taken_ < slots(); }

  // Pages that a sequence in a slot needs for that many more tokens.
  std::int64_t missing_pages(const Sequence& sequence, std::int64_t added) const;

  // Gives the sequence a slot, with its saved state or what is cached of its prompt.
  void open(Sequence& sequence);
  // Looks the prompt up again, for a sequence that has computed nothing.
  void recall(Sequence& sequence);
  // Copies more of its prompt back from host memory, or starts to read it from files,
  // if that is faster than computing the tokens, which takes `compute_seconds`; 0:
  // unknown.
  void fetch(Sequence& sequence, const std::function<double(std::int64_t tokens)>& compute_seconds);
  // After the read: the sequence continues from there, or from where it was if the files were of no use.
  void take_fetched(Sequence& sequence);
  // Empties the cache, in memory and in files.
  void forget_all();
  bool remembers() const { return tree_.has_value(); }
  // States that a pass can copy on its way, and places for that many, rising; others are evicted.
  std::int64_t copies() const { return pass().pool().extent().snapshots; }
  std::vector<prefix::SnapshotPlace> take_snapshots(std::int64_t count);
  // Caches what a sequence had computed when this copy was made.
  void remember(const Sequence& sequence, const StateCopy& copy);
  // Caches what a sequence has computed, up to a multiple of 64; with recurrent states all of it.
  void remember(const Sequence& sequence);
  // With reuse_decoded: saves, after a step, the state at the end of a block, and caches it when the answer
  // is done.
  void follow_answer(Sequence& sequence);
  void remember_answer(const Sequence& sequence);
  std::vector<RememberedPrefix> remembered(const prefix::Salt& salt, std::size_t most) const;
  void close(Sequence& sequence);
  // Takes the slot and the pages away and saves their contents in host memory.
  void suspend(Sequence& sequence);

 private:
  class Pages;

  void open_disk(engine::Core& core, const SchedulerOptions& settled);
  prefix::SavedState save_state(std::int64_t slot, std::int64_t rows);
  prefix::KeptState copy_state(const Sequence& sequence, std::int64_t rows);
  void keep(const Sequence& sequence, std::int64_t rows, prefix::KeptState state);
  void store(const Sequence& sequence, std::int64_t rows, const prefix::SavedState& state);
  void load_state(const Sequence& sequence, std::int64_t rows, const prefix::KeptState& state);
  // Rows after the first `paged` ones, loaded from elsewhere, and the states after all of them.
  struct Loaded {
    std::int64_t paged = 0;
    std::int64_t rows = 0;
    std::int64_t exact = 0;
    std::vector<prefix::SavedState> parts = {};
    prefix::KeptState state = {};
  };
  // Returns false if there is no room for them; the sequence is then unchanged.
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
  engine::placement::Budget::Claim memory_claim_;
  prefix::HostMemory memory_;
  std::unique_ptr<prefix::PageOwner> owner_;
  std::optional<prefix::PrefixTree> tree_;
  std::optional<prefix::DiskStore> disk_;
  CostLine loading_;  // seconds over rows
  std::int64_t taken_ = 0;
};

}  // namespace sluice::scheduler
