// Passes over prompts: which sequences, and how many tokens of each.
#include <algorithm>

#include "base/integer_cast.h"
#include "scheduler/chunk_plan.h"
#include "scheduler/loop.h"

namespace sluice::scheduler {

// The sequences that may be read, in order: a scored one runs alone if it is the first; otherwise scored ones
// wait.
std::vector<SequencePtr> Loop::readers() const {
  std::vector<SequencePtr> readers;
  std::copy_if(active_.begin(), active_.end(), std::back_inserter(readers),
               [](const SequencePtr& one) { return one->may_read(); });
  std::sort(readers.begin(), readers.end(),
            [](const SequencePtr& a, const SequencePtr& b) { return a->before(*b); });
  if (!readers.empty() && readers.front()->scored()) readers.resize(1);
  if (readers.size() > 1) std::erase_if(readers, [](const SequencePtr& one) { return one->scored(); });
  return readers;
}

std::vector<Passes::Chunk> Loop::plan_chunks() const {
  const std::vector<SequencePtr> readers = this->readers();
  std::vector<PromptPart> parts;
  std::int64_t copies = places_.copies();
  for (const SequencePtr& one : readers) {
    parts.push_back({one->past, one->next_stop(copies) - one->past});
    copies -= std::min(copies, std::ssize(one->save_at));
  }
  const std::int64_t past = readers.empty() ? 0 : readers.front()->past;
  std::int64_t budget = budget_.tokens(!decoding().empty(), past);
  if (!readers.empty() && readers.front()->scored()) budget = std::min(budget, passes_.most_scored());
  const std::vector<std::int64_t> counts = scheduler::plan_chunks(parts, budget);
  std::vector<Passes::Chunk> chunks;
  for (std::size_t i = 0; i < readers.size(); ++i)
    if (counts[i] > 0) chunks.push_back({readers[i], counts[i]});
  return chunks;
}

bool Loop::make_room(std::vector<Passes::Chunk>& chunks) {
  std::int64_t needed = 0;
  for (auto chunk = chunks.begin(); chunk != chunks.end();) {
    const std::int64_t missing = places_.missing_pages(*chunk->sequence, chunk->tokens);
    if (!places_.make_free(needed + missing)) {
      if (places_.forget_shared(*chunk->sequence) || suspend_last(chunk->sequence.get())) return false;
      chunk = chunks.erase(chunk);
      continue;
    }
    needed += missing;
    ++chunk;
  }
  return true;
}

// States to be saved inside chunks.
void Loop::add_copies(std::vector<Passes::Chunk>& chunks) {
  std::vector<std::pair<Passes::Chunk*, std::int64_t>> points;
  for (Passes::Chunk& chunk : chunks)
    for (const std::int64_t at : chunk.sequence->save_at)
      if (at < chunk.sequence->past + chunk.tokens) points.push_back({&chunk, at});
  const std::vector<prefix::SnapshotPlace> places = places_.take_snapshots(std::ssize(points));
  for (std::size_t i = 0; i < places.size(); ++i)
    points[i].first->copies.push_back({points[i].second, places[i]});
}

bool Loop::read() {
  std::vector<Passes::Chunk> chunks = plan_chunks();
  while (!make_room(chunks)) chunks = plan_chunks();
  if (chunks.empty()) return false;
  if (decoding().empty()) stepped_.reset();  // no answer is waiting meanwhile
  add_copies(chunks);
  add_twins(chunks);
  std::int64_t tokens = 0;
  double rows = 0;  // before each token, summed over all tokens
  for (const Passes::Chunk& chunk : chunks) {
    tokens += chunk.tokens;
    rows += to_double(chunk.tokens * (2 * chunk.sequence->past + chunk.tokens)) / 2;
  }
  try {
    const Passes::Result result = passes_.read(chunks);
    budget_.prefilled(tokens, result.seconds, rows);
    read_since_ = true;
    for (const Passes::Chunk& chunk : chunks) {
      outbox_.progress(chunk.sequence);
      take_twins(chunk);
    }
    take_choices(result);
    // Caching takes time that the first token need not wait for.
    const auto answered = [](const Passes::Outcome& one) { return one.chosen.has_value(); };
    if (std::any_of(result.outcomes.begin(), result.outcomes.end(), answered)) deliver();
    for (const Passes::Chunk& chunk : chunks) remember(chunk);
    end_those_done(result);
  } catch (...) {
    for (const Passes::Chunk& chunk : chunks) finish(chunk.sequence, std::current_exception());
  }
  const std::lock_guard lock(mutex_);
  counts_.prompt_tokens += tokens;
  return true;
}

}  // namespace sluice::scheduler
