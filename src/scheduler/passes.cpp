#include "scheduler/passes.h"

#include <time.h>

#include <algorithm>
#include <latch>
#include <limits>
#include <thread>

#include "base/integer_cast.h"
#include "sampling/logprobs.h"

namespace sluice::scheduler {

namespace {

// Processor time of this thread, which does not count other processes.
std::chrono::nanoseconds thread_time() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

using Next = engine::ForwardPass::Next;

Next last_token(const Sequence& sequence, std::int64_t position) {
  return {sequence.slot->number(), static_cast<std::int32_t>(position), sequence.tokens[to_size(position)]};
}

engine::Batch batch_of(std::span<const SequencePtr> sequences) {
  engine::Batch batch{ops::Phase::decode, {}};
  for (const SequencePtr& sequence : sequences)
    batch.sequences.push_back(
        {sequence->slot->number(), sequence->past, std::span(sequence->tokens).last(1), 1});
  return batch;
}

// On a host backend the processors are busy with computing.
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

// The tokens that a pass samples: one for some of its sequences.
struct Passes::Choices {
  Result result;
  std::vector<std::size_t> of;  // indices into result.outcomes
  std::vector<Next> last;
  std::vector<engine::SampleRequest> requests;
  std::vector<SampledToken> chosen;
  std::latch masks{1};  // released once the masks are computed

  void add(const SequencePtr& sequence, std::int64_t position) {
    of.push_back(result.outcomes.size() - 1);
    last.push_back(last_token(*sequence, position));
    requests.push_back({sequence->answer.settings(), sequence->tokens, {}, sequence->follows});
  }
  void add_step(const SequencePtr& sequence) {
    result.outcomes.push_back({sequence, {}});
    add(sequence, sequence->past);
  }
  Outcome& outcome(std::size_t i) { return result.outcomes[of[i]]; }
  bool masked() const {
    return std::any_of(of.begin(), of.end(),
                       [this](std::size_t i) { return result.outcomes[i].sequence->answer.masked(); });
  }
  std::int64_t candidates() const { return result.outcomes[of[0]].sequence->answer.candidates(); }
  void make_mask(std::size_t i) try {
    constexpr std::chrono::milliseconds kLong{5};
    Sequence& sequence = *outcome(i).sequence;
    if (!sequence.answer.masked()) return;
    const auto start = thread_time();
    requests[i].allowed = sequence.mask.valid() ? sequence.mask.get() : sequence.answer.mask();
    if (thread_time() - start > kLong) sequence.slow_masks = true;
  } catch (...) {
    outcome(i).error = std::current_exception();
  }
  void make_masks(ThreadPool& helpers) {
    if (!masked()) return;
    helpers.parallel_for_dynamic(0, std::ssize(of), 1, [this](std::int64_t begin, std::int64_t end, int) {
      for (; begin < end; ++begin) make_mask(to_size(begin));
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
  for (const SequencePtr& sequence : sequences) choices.add_step(sequence);
  const engine::Batch batch = batch_of(sequences);
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

std::int64_t Passes::stages() const {
  return places_.pass().stages();
}

void Passes::depart(std::span<const SequencePtr> sequences) {
  const engine::Batch batch = batch_of(sequences);
  engine::ForwardPass::Underway pass = core_.executor->run([&] { return places_.pass().depart(batch); });
  underway_.push_back({{sequences.begin(), sequences.end()}, std::move(pass)});
  ++departures_;
  for (const SequencePtr& sequence : sequences) {
    sequence->underway = true;
    sequence->departed = departures_;
  }
}

Passes::Step Passes::take_first() {
  Step step = std::move(underway_.front());
  underway_.pop_front();
  for (const SequencePtr& sequence : step.sequences) sequence->underway = false;
  return step;
}

Passes::Result Passes::arrive() {
  const Step step = take_first();
  Choices choices;
  for (const SequencePtr& sequence : step.sequences) choices.add_step(sequence);
  run(choices, [&](Choices& open) {
    engine::ForwardPass& pass = places_.pass();
    pass.arrive(step.pass);
    open.masks.wait();
    open.chosen = pass.sample(open.last, open.requests, open.candidates());
  });
  for (const SequencePtr& sequence : step.sequences) ++sequence->past;
  return std::move(choices.result);
}

void Passes::abandon() {
  while (!underway_.empty()) {
    const Step step = take_first();
    try {
      core_.executor->run([&] { places_.pass().arrive(step.pass); });
    } catch (const std::exception&) {  // a node was lost
    }
  }
}

// The logits of all tokens of a pass take memory that nothing else needs, so their number is limited.
std::int64_t Passes::most_scored() const {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  const std::int64_t row = core_.model.decoder.vocab * static_cast<std::int64_t>(sizeof(float));
  return std::max(kChunkUnit, kBytes / row / kChunkUnit * kChunkUnit);
}

// Scores each token by the logits before it.
void Passes::score(Sequence& sequence, std::int64_t tokens, std::span<const float> logits) {
  const std::size_t vocab = logits.size() / to_size(tokens);
  const auto candidates = to_size(sequence.answer.candidates());
  const std::int64_t first = sequence.past + 1;
  const std::int64_t count = std::min(tokens, sequence.prompt - first);
  sequence.scores.resize(to_size(first - 1 + count));
  helpers_.parallel_for_dynamic(0, count, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (; begin < end; ++begin) {
      const sampling::Logprobs logprobs(logits.subspan(to_size(begin) * vocab, candidates));
      const std::int32_t id = sequence.tokens[to_size(first + begin)];
      const bool possible = to_size(id) < candidates;
      sequence.scores[to_size(first - 1 + begin)] = {
          id, possible ? logprobs[id] : -std::numeric_limits<double>::infinity(),
          logprobs.top(to_size(sequence.request.prompt_logprobs))};
    }
  });
}

Passes::Result Passes::read(std::span<const Chunk> chunks) {
  Choices choices;
  engine::Batch batch{ops::Phase::prefill, {}};
  for (const auto& [sequence, count, copies, twins] : chunks) {
    choices.result.outcomes.push_back({sequence, {}});
    const std::int64_t end = sequence->past + count;
    const bool answers = end == sequence->prompt && sequence->answer.open();
    const std::int64_t rows = sequence->scored() ? count : answers ? 1 : 0;
    if (answers) choices.add(sequence, end - 1);
    for (const StateCopy& copy : copies)
      batch.saves.push_back({batch.tokens() + copy.rows - sequence->past, *copy.place});
    const auto ids = std::span(sequence->tokens).subspan(to_size(sequence->past), to_size(count));
    batch.sequences.push_back({sequence->slot->number(), sequence->past, ids, rows});
  }
  for (const Chunk& chunk : chunks)
    for (const SequencePtr& twin : chunk.twins) {
      choices.result.outcomes.push_back({twin, {}});
      choices.add(twin, twin->prompt - 1);
    }
  std::vector<float> logits;  // of every token of a scored sequence
  run(choices, [&](Choices& open) {
    places_.pass().run(batch);
    if (chunks[0].sequence->scored()) {
      places_.pass().read_logits(logits);
      const auto last = std::span(logits).last(logits.size() / to_size(chunks[0].tokens));
      places_.pass().put_logits(chunks[0].sequence->slot->number(), last);
    }
    for (const Chunk& chunk : chunks)
      for (const SequencePtr& twin : chunk.twins)
        places_.pass().fork(chunk.sequence->slot->number(), twin->slot->number(), twin->prompt);
    open.masks.wait();
    if (open.of.empty()) return core_.backend->synchronize();
    open.chosen = places_.pass().sample(open.last, open.requests, open.candidates());
  });
  if (!logits.empty()) score(*chunks[0].sequence, chunks[0].tokens, logits);
  for (const Chunk& chunk : chunks) chunk.sequence->past += chunk.tokens;
  return std::move(choices.result);
}

}  // namespace sluice::scheduler
