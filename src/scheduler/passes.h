// The two kinds of work on the device: a decode step of all answering sequences, and chunks of prompts. While
// the device works, masks of guided answers are computed and callbacks run.
#pragma once

#include <deque>

#include "base/thread_pool.h"
#include "scheduler/places.h"

namespace sluice::scheduler {

class Passes {
 public:
  // `meanwhile` is called once in each pass, on the caller's thread, while the device works.
  Passes(engine::Core& core, Places& places, std::function<void()> meanwhile);

  // The result of a pass for one sequence.
  struct Outcome {
    SequencePtr sequence;
    std::optional<SampledToken> chosen;  // absent in the middle of a prompt
    std::exception_ptr error = {};       // of this sequence only
  };
  struct Result {
    std::vector<Outcome> outcomes;
    double seconds = 0;
  };
  // Computes each sequence's last token and samples the next one.
  Result step(std::span<const SequencePtr> sequences);
  // The same in two halves, for nodes that split the layers: this many steps of different sequences keep all
  // nodes busy.
  std::int64_t stages() const;
  void depart(std::span<const SequencePtr> sequences);
  std::int64_t underway() const { return std::ssize(underway_); }
  // The sequences of the step that departed first.
  std::vector<SequencePtr> next_to_arrive() const { return underway_.front().sequences; }
  Result arrive();
  // Waits for the steps in flight and discards their results.
  void abandon();
  // Computes that many tokens of each prompt; at a prompt's end the first token of the answer is sampled.
  // A sequence that is scored is read alone, at most that many tokens per pass.
  std::int64_t most_scored() const;
  struct Chunk {
    SequencePtr sequence;
    std::int64_t tokens = 0;
    std::vector<StateCopy> copies = {};  // of its states on the way, in rising order
    // Sequences with the same prompt, if the chunk ends it: each continues from it with a sample of its own.
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
  void score(Sequence& sequence, std::int64_t tokens, std::span<const float> logits);
  void run(Choices& choices, const std::function<void(Choices&)>& job);

  engine::Core& core_;
  Places& places_;
  std::function<void()> meanwhile_;
  std::deque<Step> underway_;
  std::int64_t departures_ = 0;
  ThreadPool helpers_;  // compute masks and scores
};

}  // namespace sluice::scheduler
