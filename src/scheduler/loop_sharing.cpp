// What a sequence has from others before it computes anything: prompts that were read before, those that are
// just being read, and files.
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
} catch (const std::bad_alloc&) {  // then not
}

// A prompt that begins like one which is being read waits for that part of it.
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

// Those whose prompt ends with that of a chunk.
void Loop::add_twins(std::vector<Passes::Chunk>& chunks) const {
  for (Passes::Chunk& chunk : chunks) {
    const Sequence& read = *chunk.sequence;
    if (read.past + chunk.tokens < read.prompt || !read.answer.open()) continue;
    for (const SequencePtr& one : active_)
      if (one->twin_of(read)) chunk.twins.push_back(one);
  }
}

// They are where their leader is.
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

// What files hold of its prompt is read, unless another one is to come up with it.
void Loop::fetch(Sequence& sequence) {
  if (sequence.reading() && sequence.leader == nullptr && !sequence.scored())
    places_.fetch(sequence, [this](std::int64_t tokens) { return budget_.seconds(tokens); });
}

// Those whose leader has come so far, or will not, go on; those whose files are read, too.
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

// Nobody goes on: a leader waits for pages that its followers hold. They read on their own then.
void Loop::release_all_followers() {
  for (const SequencePtr& one : active_) {
    if (one->leader == nullptr) continue;
    one->leader = nullptr;
    one->awaited = 0;
    outbox_.progress(one);
  }
}

}  // namespace sluice::scheduler
