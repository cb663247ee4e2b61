// The two kinds of work on the device: a step of all sequences that are answered, and chunks of prompts.
// While the device works, masks of guided answers are made and callers hear what came before.
#pragma once

#include <deque>

#include "base/thread_pool.h"
#include "scheduler/places.h"

namespace sluice::scheduler {

class Passes {
 public:
  // `meanwhile` is called once in each pass, on the caller's thread, while the device works.
  Passes(engine::Core& core, Places& places, std::function<void()> meanwhile);

  // What came of one sequence in a pass.
  struct Outcome {
    SequencePtr sequence;
    std::optional<SampledToken> chosen;  // absent in the middle of a prompt
    std::exception_ptr error = {};       // of this one alone
  };
  struct Result {
    std::vector<Outcome> outcomes;
    double seconds = 0;
  };
  // Computes each sequence's last token and chooses the next one.
  Result step(std::span<const SequencePtr> sequences);
  // The same in two halves, where nodes hold layers one behind the other: so many steps of different
  // sequences keep all at work.
  std::int64_t stages() const;
  void depart(std::span<const SequencePtr> sequences);
  std::int64_t underway() const { return std::ssize(underway_); }
  // Of the step that departed first.
  std::vector<SequencePtr> next_to_arrive() const { return underway_.front().sequences; }
  Result arrive();
  // Waits for what is underway; nobody wants it.
  void abandon();
  // Reads so many tokens of each prompt; behind a prompt's end the first token of the answer is chosen.
  struct Chunk {
    SequencePtr sequence;
    std::int64_t tokens = 0;
    std::vector<StateCopy> copies = {};  // of its states on the way, rising
    // That have the same prompt, where the chunk ends it: each goes on behind it with a choice of its own.
    std::vector<SequencePtr> twins = {};
  };
  Result read(std::span<const Chunk> chunks);

 private:
  struct Choices;
  struct Step {
    std::vector<SequencePtr> sequences;
    engine::ForwardPass::Underway pass;
  };
  Step take_first();
  void run(Choices& choices, const std::function<void(Choices&)>& job);

  engine::Core& core_;
  Places& places_;
  std::function<void()> meanwhile_;
  std::deque<Step> underway_;
  std::int64_t departures_ = 0;
  ThreadPool helpers_;  // make masks
};

}  // namespace sluice::scheduler
