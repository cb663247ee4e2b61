// The scheduler's thread: it takes requests from the queue, gives them slots, and runs passes until they are
// done.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "scheduler/outbox.h"
#include "scheduler/passes.h"
#include "scheduler/prompt_budget.h"

namespace sluice::scheduler {

class Loop {
 public:
  Loop(Engine& engine, const SchedulerOptions& settled);
  // Cancels running and waiting requests.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // From any thread.
  void submit(const SequencePtr& sequence);
  SchedulerState state() const;
  void drain();
  void forget_prompts();
  std::vector<RememberedPrefix> remembered(const prefix::Salt& salt, std::size_t most);

 private:
  void work();
  void turn();
  void await_others();
  // Runs `job` on the loop's thread between two turns and waits for it; does nothing once that thread has
  // ended.
  void run_on_loop(const std::function<void()>& job);
  void run_jobs();

  // Ends requests that were cancelled, timed out or failed.
  void sweep();
  std::exception_ptr reason_to_end(const Sequence& sequence, Clock::time_point now) const;
  void finish(SequencePtr sequence, std::exception_ptr error = {});
  void finish_all(const std::exception_ptr& error);

  // Gives slots to the requests whose turn it is.
  void admit();
  SequencePtr next_waiting();
  bool fits(const Sequence& sequence) const;
  bool open(const SequencePtr& sequence);

  void follow(Sequence& sequence);
  void add_twins(std::vector<Passes::Chunk>& chunks) const;
  void take_twins(const Passes::Chunk& chunk);
  void fetch(Sequence& sequence);
  void release_followers();
  void release_all_followers();
  void remember(const Passes::Chunk& chunk);

  // Each returns whether there was something to compute.
  bool step();
  bool read();
  // A step in groups of sequences that are in flight on other nodes at once; each departs again as soon as
  // its tokens are chosen, so some are in flight between turns.
  bool step_in_groups();
  void depart();
  std::int64_t arrive();
  std::vector<SequencePtr> next_group() const;
  // The sequences of `choose`, once there are pages for a token of each.
  std::vector<SequencePtr> with_pages(const std::function<std::vector<SequencePtr>()>& choose);
  void measure_turn();
  void take(const Passes::Result& result);
  // take() in two halves: report the chosen tokens, then end the sequences that are done.
  void take_choices(const Passes::Result& result);
  void take_choice(const SequencePtr& sequence, const SampledToken& chosen);
  void end_those_done(const Passes::Result& result);
  std::vector<SequencePtr> decoding() const;
  std::vector<SequencePtr> ready_to_step();
  std::vector<SequencePtr> readers() const;
  std::vector<Passes::Chunk> plan_chunks() const;
  void add_copies(std::vector<Passes::Chunk>& chunks);
  // Removes chunks that have no pages. Returns false if a sequence was suspended, so plan again.
  bool make_room(std::vector<Passes::Chunk>& chunks);
  // Suspends the last sequence with pages that runs after `behind` (null: of all), or resumes it first.
  // Returns whether something changed.
  bool suspend_last(const Sequence* behind);

  void deliver();
  void publish();
  void count_pages();

  const SchedulerOptions options_;
  Places places_;
  Outbox outbox_;
  engine::JobThread slow_masks_;
  Passes passes_;
  PromptBudget budget_;
  std::optional<Clock::time_point> stepped_;  // the end of the last step, while sequences are answered
  bool read_since_ = false;                   // whether prompts ran since then
  std::int64_t pages_used_ = 0;               // by sequences, when the last one came or went
  std::int64_t pages_spare_ = 0;
  std::vector<SequencePtr> active_;  // in slots, in the order of their admission
  std::vector<SequencePtr> parked_;  // taken from the queue and without a slot, the next one first

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  FairQueue queue_;
  std::unordered_map<std::uint64_t, SequencePtr> waiting_;  // in the queue, by id
  std::int64_t pending_ = 0;                                // submitted and not done
  bool draining_ = false;
  bool stopping_ = false;
  std::vector<const std::function<void()>*> jobs_;  // work that other threads wait for
  bool done_ = false;                               // the thread has ended
  SchedulerState counts_;
  std::vector<Clock::time_point> arrivals_;  // of counts_.sequences

  std::thread thread_;  // last, because it uses the others
};

}  // namespace sluice::scheduler
