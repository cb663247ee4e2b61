#include "scheduler/passes.h"

#include <algorithm>
#include <latch>
#include <thread>

namespace sluice::scheduler {

namespace {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

using Next = engine::ForwardPass::Next;

Next last_token(const Sequence& sequence, std::int64_t position) {
  return {sequence.slot->number(), static_cast<std::int32_t>(position),
          sequence.tokens[static_cast<std::size_t>(position)]};
}

// Where the host computes, its processors are busy with that.
int helpers_for(const ops::Traits& backend) {
  constexpr unsigned kMost = 8;
  const unsigned processors = std::thread::hardware_concurrency();
  return backend.host_memory ? 1 : static_cast<int>(std::clamp(processors / 2, 1u, kMost));
}

}  // namespace

Passes::Passes(engine::Core& core, Places& places, std::function<void()> meanwhile)
    : core_(core),
      places_(places),
      meanwhile_(std::move(meanwhile)),
      helpers_(helpers_for(core.backend->traits())) {}

// The tokens that a pass chooses: one behind each of some sequences.
struct Passes::Choices {
  Result result;
  std::vector<std::size_t> of;  // in result.outcomes
  std::vector<Next> last;
  std::vector<engine::SampleRequest> requests;
  std::vector<SampledToken> chosen;
  std::latch masks{1};  // open once the masks are made

  void add(const SequencePtr& sequence, std::int64_t position) {
    of.push_back(result.outcomes.size() - 1);
    last.push_back(last_token(*sequence, position));
    requests.push_back({sequence->answer.settings(), sequence->tokens, {}, sequence->follows});
  }
  Outcome& outcome(std::size_t i) { return result.outcomes[of[i]]; }
  bool masked() const {
    return std::any_of(of.begin(), of.end(),
                       [this](std::size_t i) { return result.outcomes[i].sequence->answer.masked(); });
  }
  std::int64_t candidates() const { return result.outcomes[of[0]].sequence->answer.candidates(); }
  void make_mask(std::size_t i) try {
    requests[i].allowed = outcome(i).sequence->answer.mask();
  } catch (...) {
    outcome(i).error = std::current_exception();
  }
  void make_masks(ThreadPool& helpers) {
    if (!masked()) return;
    helpers.parallel_for_dynamic(0, static_cast<std::int64_t>(of.size()), 1,
                                 [this](std::int64_t begin, std::int64_t end, int) {
                                   for (; begin < end; ++begin) make_mask(static_cast<std::size_t>(begin));
                                 });
  }
};

void Passes::run(Choices& choices, const std::function<void(Choices&)>& job) {
  engine::Executor::Started started = core_.executor->start([&] {
    const auto start = Clock::now();
    job(choices);
    choices.result.seconds = seconds_since(start);
  });
  choices.make_masks(helpers_);
  choices.masks.count_down();
  meanwhile_();
  started.wait();
  for (std::size_t i = 0; i < choices.of.size(); ++i) {
    choices.outcome(i).chosen = std::move(choices.chosen[i]);
    choices.outcome(i).sequence->follows = true;
  }
}

Passes::Result Passes::step(std::span<const SequencePtr> sequences) {
  Choices choices;
  engine::Batch batch{ops::Phase::decode, {}};
  for (const SequencePtr& sequence : sequences) {
    choices.result.outcomes.push_back({sequence, {}});
    choices.add(sequence, sequence->past);
    batch.sequences.push_back(
        {sequence->slot->number(), sequence->past, std::span(sequence->tokens).last(1), 1});
  }
  const bool masked = choices.masked();
  run(choices, [&](Choices& open) {
    engine::ForwardPass& pass = places_.pass();
    if (!masked) {
      open.chosen = pass.step_and_sample(open.last, open.requests, open.candidates());
      return;
    }
    pass.run(batch);
    open.masks.wait();
    open.chosen = pass.sample(open.last, open.requests, open.candidates());
  });
  for (const SequencePtr& sequence : sequences) ++sequence->past;
  return std::move(choices.result);
}

Passes::Result Passes::read(std::span<const Chunk> chunks) {
  Choices choices;
  engine::Batch batch{ops::Phase::prefill, {}};
  for (const auto& [sequence, count, copies] : chunks) {
    choices.result.outcomes.push_back({sequence, {}});
    const std::int64_t end = sequence->past + count;
    const bool answers = end == sequence->prompt && sequence->answer.open();
    if (answers) choices.add(sequence, end - 1);
    for (const StateCopy& copy : copies)
      batch.saves.push_back({batch.tokens() + copy.rows - sequence->past, *copy.place});
    const auto ids = std::span(sequence->tokens)
                         .subspan(static_cast<std::size_t>(sequence->past), static_cast<std::size_t>(count));
    batch.sequences.push_back({sequence->slot->number(), sequence->past, ids, answers ? 1 : 0});
  }
  run(choices, [&](Choices& open) {
    places_.pass().run(batch);
    open.masks.wait();
    if (open.of.empty()) return core_.backend->synchronize();
    open.chosen = places_.pass().sample(open.last, open.requests, open.candidates());
  });
  for (const Chunk& chunk : chunks) chunk.sequence->past += chunk.tokens;
  return std::move(choices.result);
}

}  // namespace sluice::scheduler
