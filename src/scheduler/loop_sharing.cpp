// What a sequence takes over before it computes anything: from cached prompts, from prompts in progress, and
// from files.
#include <algorithm>

#include "scheduler/loop.h"

namespace sluice::scheduler {

void Loop::remember(const Passes::Chunk& chunk) try {
  Sequence& sequence = *chunk.sequence;
  std::vector<std::int64_t>& points = sequence.save_at;
  const bool due = std::find(points.begin(), points.end(), sequence.past) != points.end();
  std::erase_if(points, [&](std::int64_t at) { return at <= sequence.past; });
  for (const StateCopy& copy : chunk.copies) places_.remember(sequence, copy);
  if (due || !sequence.reading()) places_.remember(sequence);
} catch (const std::bad_alloc&) {  // then it is not cached
}

// A prompt that shares a prefix with one in progress waits until that is computed.
void Loop::follow(Sequence& sequence) {
  if (!places_.remembers() || sequence.scored()) return;
  for (const SequencePtr& other : active_) {
    if (other.get() == &sequence || !other->reading() || other->salt != sequence.salt) continue;
    if (other->leader == nullptr && other->prompt == sequence.prompt && sequence.answer.open() &&
        other->answer.open() && !other->scored() &&
        std::equal(sequence.tokens.begin(), sequence.tokens.end(), other->tokens.begin())) {
      sequence.leader = other;
      sequence.awaited = sequence.prompt;
      return;
    }
    const std::ptrdiff_t most = std::min(sequence.prompt - 1, other->prompt);
    const auto parted =
        std::mismatch(sequence.tokens.begin(), sequence.tokens.begin() + most, other->tokens.begin());
    const std::int64_t common = (parted.first - sequence.tokens.begin()) / kChunkUnit * kChunkUnit;
    if (common <= other->past || common <= std::max(sequence.past, sequence.awaited)) continue;
    sequence.leader = other;
    sequence.awaited = common;
  }
  if (sequence.leader == nullptr) return;
  std::vector<std::int64_t>& points = sequence.leader->save_at;
  const auto place = std::lower_bound(points.begin(), points.end(), sequence.awaited);
  if (place == points.end() || *place != sequence.awaited) points.insert(place, sequence.awaited);
}

// Adds the sequences with the same prompt to a chunk that ends it.
void Loop::add_twins(std::vector<Passes::Chunk>& chunks) const {
  for (Passes::Chunk& chunk : chunks) {
    const Sequence& read = *chunk.sequence;
    if (read.past + chunk.tokens < read.prompt || !read.answer.open()) continue;
    for (const SequencePtr& one : active_)
      if (one->twin_of(read)) chunk.twins.push_back(one);
  }
}

// The twins of a chunk continue from their leader's state.
void Loop::take_twins(const Passes::Chunk& chunk) {
  for (const SequencePtr& twin : chunk.twins) {
    twin->leader = nullptr;
    twin->awaited = 0;
    twin->report.shared = twin->prompt - twin->report.cached;
    twin->past = twin->prompt;
    twin->exact = chunk.sequence->exact;
    twin->save_at.clear();
    outbox_.progress(twin);
    const std::lock_guard lock(mutex_);
    counts_.prompt_tokens += twin->report.shared;
  }
}

// Loads what is stored of its prompt, unless another sequence is computing it.
void Loop::fetch(Sequence& sequence) {
  if (sequence.reading() && sequence.leader == nullptr && !sequence.scored())
    places_.fetch(sequence, [this](std::int64_t tokens) { return budget_.seconds(tokens); });
}

// Releases the sequences whose leader has come far enough or will not, and those whose files are read.
void Loop::release_followers() {
  for (const SequencePtr& one : active_) {
    if (one->fetch && one->fetch->reading->done) try {
        places_.take_fetched(*one);
        outbox_.progress(one);
      } catch (...) {
        one->error = std::current_exception();
      }
    if (one->leader == nullptr) continue;
    const bool coming = one->leader->slot && one->leader->past < one->awaited;
    if (coming) continue;
    one->leader = nullptr;
    one->awaited = 0;
    places_.recall(*one);
    fetch(*one);
    if (!one->fetch) outbox_.progress(one);
  }
}

// Called if nothing progresses because a leader waits for pages that its followers hold. They then read on
// their own.
void Loop::release_all_followers() {
  for (const SequencePtr& one : active_) {
    if (one->leader == nullptr) continue;
    one->leader = nullptr;
    one->awaited = 0;
    outbox_.progress(one);
  }
}

}  // namespace sluice::scheduler
