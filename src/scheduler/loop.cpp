#include "scheduler/loop.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::scheduler {

namespace {

std::int64_t most_tokens(Engine& engine) {
  constexpr std::int64_t kMost = 8192;
  return std::min(kMost, engine::core(engine).settings.prefill_chunk);
}

}  // namespace

Loop::Loop(Engine& engine, const SchedulerOptions& settled)
    : options_(settled),
      places_(engine::core(engine), settled),
      passes_(engine::core(engine), places_, [this] { deliver(); }),
      budget_({.target_seconds = settled.token_interval_seconds, .most = most_tokens(engine)}),
      queue_({.capacity = settled.queue}) {
  counts_.parallel = settled.parallel;
  counts_.context = settled.context;
  counts_.cache_tokens = settled.cache_tokens;
  thread_ = std::thread([this] { work(); });
}

Loop::~Loop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Loop::submit(const SequencePtr& sequence) {
  const std::lock_guard lock(mutex_);
  try {
    if (draining_ || stopping_)
      fail(ErrorKind::busy, "no more requests are accepted: the scheduler is stopping");
    queue_.push({.id = sequence->id,
                 .key = sequence->request.key,
                 .priority = sequence->request.priority,
                 .cost = sequence->prompt + std::min(options_.context, sequence->request.options.max_tokens),
                 .arrived = sequence->arrived,
                 .deadline = sequence->deadline,
                 .cancel = sequence->cancel});
  } catch (const Error&) {
    ++counts_.refused;
    throw;
  }
  waiting_.emplace(sequence->id, sequence);
  ++counts_.requests;
  ++counts_.waiting;
  ++pending_;
  changed_.notify_all();
}

void Loop::drain() {
  std::unique_lock lock(mutex_);
  draining_ = true;
  changed_.wait(lock, [this] { return pending_ == 0; });
}

SchedulerState Loop::state() const {
  const std::lock_guard lock(mutex_);
  SchedulerState state = counts_;
  const auto now = Clock::now();
  for (std::size_t i = 0; i < arrivals_.size(); ++i)
    state.sequences[i].seconds = seconds_between(arrivals_[i], now);
  return state;
}

void Loop::work() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] {
        return stopping_ || !jobs_.empty() || queue_.size() + active_.size() + parked_.size() > 0;
      });
      if (stopping_) break;
    }
    try {
      run_jobs();
      turn();
    } catch (...) {  // not caused by a single request
      finish_all(std::current_exception());
    }
    if (active_.empty()) deliver();  // otherwise during the next pass
  }
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, sequence] : waiting_) parked_.push_back(sequence);
    waiting_.clear();
  }
  finish_all({});
  deliver();
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void Loop::turn() {
  sweep();
  admit();
  release_followers();
  const bool stepped = step();
  if (read() || stepped) return;
  if (std::any_of(active_.begin(), active_.end(),
                  [](const SequencePtr& one) { return one->fetch || one->awaits_mask(); }))
    await_others();
  else
    release_all_followers();
}

// Nothing can be computed before a file is read or a mask is ready. Sleeps briefly, so that new and cancelled
// requests are noticed soon.
void Loop::await_others() {
  deliver();
  constexpr std::chrono::milliseconds kMoment{1};
  std::this_thread::sleep_for(kMoment);
}

std::exception_ptr Loop::reason_to_end(const Sequence& sequence, Clock::time_point now) const {
  if (sequence.error || sequence.deadline > now) return sequence.error;
  return std::make_exception_ptr(Error(
      ErrorKind::busy, fmt::format("the request timed out after {} s", sequence.request.timeout_seconds)));
}

void Loop::sweep() {
  const auto now = Clock::now();
  std::vector<SequencePtr> ended;
  for (const auto* list : {&active_, &parked_})
    for (const SequencePtr& sequence : *list) {
      if (sequence->underway || sequence->awaits_mask()) continue;  // until its step returns
      if (sequence->error || sequence->cancel.cancelled() || sequence->deadline <= now)
        ended.push_back(sequence);
    }
  {
    const std::lock_guard lock(mutex_);
    for (const Waiting& dropped : queue_.drop(now)) {
      ended.push_back(std::move(waiting_.at(dropped.id)));
      waiting_.erase(dropped.id);
    }
  }
  for (const SequencePtr& sequence : ended) finish(sequence, reason_to_end(*sequence, now));
}

// By value: callers pass elements of the lists from which it is erased here.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void Loop::finish(SequencePtr sequence, std::exception_ptr error) {
  const auto now = Clock::now();
  engine::answer::AnswerStream& answer = sequence->answer;
  if (sequence->mask.valid()) sequence->mask.wait();
  const bool cut = answer.open();
  answer.end(FinishReason::cancelled);
  if (auto rest = answer.rest()) outbox_.token(sequence, std::move(*rest));
  if (sequence->slot) places_.remember_answer(*sequence);
  places_.close(*sequence);
  count_pages();
  std::erase(active_, sequence);
  std::erase(parked_, sequence);
  RequestResult result;
  result.generated = std::move(answer.result());
  result.generated.prompt_tokens = std::min(sequence->past, sequence->prompt);
  result.prompt = sequence->report;
  result.prompt_logprobs = std::move(sequence->scores);
  const auto began = sequence->began.value_or(now);
  const auto first = sequence->first.value_or(now);
  result.queued_seconds = seconds_between(sequence->arrived, began);
  result.generated.prompt_seconds = seconds_between(began, first);
  result.generated.first_token_seconds = seconds_between(sequence->arrived, first);
  result.generated.decode_seconds = seconds_between(first, now);
  result.error = std::move(error);
  {
    const std::lock_guard lock(mutex_);
    counts_.cached_tokens += result.prompt.cached;
    counts_.prompt_tokens += result.prompt.cached;
    ++(result.error ? counts_.failed : cut ? counts_.cancelled : counts_.finished);
  }
  outbox_.done(sequence, std::move(result));
}

void Loop::finish_all(const std::exception_ptr& error) {
  passes_.abandon();
  while (!active_.empty()) finish(active_.back(), error);
  while (!parked_.empty()) finish(parked_.back(), error);
}

SequencePtr Loop::next_waiting() {
  const std::lock_guard lock(mutex_);
  const std::optional<Waiting> next = queue_.pop(Clock::now(), std::numeric_limits<std::int64_t>::max());
  if (!next) return {};
  SequencePtr sequence = std::move(waiting_.at(next->id));
  waiting_.erase(next->id);
  return sequence;
}

// Pages that the active sequences will soon need count as taken.
bool Loop::fits(const Sequence& sequence) const {
  if (active_.empty()) return true;
  std::int64_t free = places_.available_pages();
  for (const SequencePtr& other : active_)
    free -= places_.missing_pages(
        *other, std::min(std::max<std::int64_t>(0, other->prompt - other->past) + kChunkUnit,
                         options_.context - other->past));
  const std::int64_t rows = std::min(std::max(sequence.past, sequence.prompt) + kChunkUnit, options_.context);
  return state::pages_for(rows) <= free;
}

bool Loop::open(const SequencePtr& sequence) try {
  places_.open(*sequence);
  active_.push_back(sequence);
  count_pages();
  if (sequence->past < sequence->prompt) follow(*sequence);
  fetch(*sequence);
  if (!sequence->began) {
    sequence->began = Clock::now();
    if (sequence->may_read()) outbox_.progress(sequence);  // otherwise once it is known how much is cached
  }
  return true;
} catch (...) {
  finish(sequence, std::current_exception());
  return false;
}

void Loop::admit() {
  while (places_.slot_free()) {
    if (parked_.empty()) {
      SequencePtr next = next_waiting();
      if (next == nullptr) return;
      parked_.push_back(std::move(next));
    }
    const SequencePtr first = parked_.front();
    if (!fits(*first)) return;
    parked_.erase(parked_.begin());
    open(first);
  }
}

bool Loop::suspend_last(const Sequence* behind) {
  SequencePtr last;
  for (const SequencePtr& one : active_)
    if (one->past > 0 && (behind == nullptr || behind->before(*one)) && (!last || last->before(*one)))
      last = one;
  if (!last) return false;
  if (last->underway) {
    while (passes_.underway() > 0) arrive();
    return true;
  }
  try {
    places_.suspend(*last);
  } catch (...) {  // not enough host memory
    finish(last, std::current_exception());
    return true;
  }
  std::erase(active_, last);
  const auto place = std::find_if(parked_.begin(), parked_.end(),
                                  [&](const SequencePtr& one) { return last->before(*one); });
  parked_.insert(place, last);
  const std::lock_guard lock(mutex_);
  ++counts_.suspensions;
  return true;
}

std::vector<SequencePtr> Loop::decoding() const {
  std::vector<SequencePtr> found;
  std::copy_if(active_.begin(), active_.end(), std::back_inserter(found),
               [](const SequencePtr& one) { return !one->reading(); });
  return found;
}

// Sequences whose next token can be sampled: none waits for the slow mask of another.
std::vector<SequencePtr> Loop::ready_to_step() {
  std::vector<SequencePtr> found = decoding();
  std::erase_if(found, [this](const SequencePtr& one) {
    if (one->slow_masks && !one->mask.valid()) {
      auto making = std::make_shared<std::packaged_task<std::span<const std::uint8_t>()>>(
          [&answer = one->answer] { return answer.mask(); });
      one->mask = making->get_future();
      slow_masks_.post([making] { (*making)(); });
    }
    return one->awaits_mask();
  });
  return found;
}

std::vector<SequencePtr> Loop::with_pages(const std::function<std::vector<SequencePtr>()>& choose) {
  std::vector<SequencePtr> sequences = choose();
  const auto missing = [&] {
    std::int64_t sum = 0;
    for (const SequencePtr& one : sequences) sum += places_.missing_pages(*one, 1);
    return sum;
  };
  const auto forget = [&] {
    return std::any_of(sequences.begin(), sequences.end(),
                       [this](const SequencePtr& one) { return places_.forget_shared(*one); });
  };
  while (!places_.make_free(missing()) && (forget() || suspend_last(nullptr))) sequences = choose();
  return sequences;
}

bool Loop::step() {
  if (passes_.stages() > 1) return step_in_groups();
  const std::vector<SequencePtr> sequences = with_pages([this] { return ready_to_step(); });
  if (sequences.empty()) {
    stepped_.reset();
    return false;
  }
  try {
    const Passes::Result result = passes_.step(sequences);
    budget_.decoded(result.seconds);
    measure_turn();
    for (const SequencePtr& one : sequences) places_.follow_answer(*one);
    take(result);
  } catch (...) {
    for (const SequencePtr& one : sequences) finish(one, std::current_exception());
  }
  const std::lock_guard lock(mutex_);
  ++counts_.decode_steps;
  return true;
}

void Loop::measure_turn() {
  const auto now = Clock::now();
  if (stepped_ && read_since_) budget_.turned(seconds_between(*stepped_, now));
  stepped_ = now;
  read_since_ = false;
}

void Loop::take(const Passes::Result& result) {
  take_choices(result);
  end_those_done(result);
}

void Loop::take_choices(const Passes::Result& result) {
  for (const auto& [sequence, chosen, error] : result.outcomes)
    if (!error && chosen) take_choice(sequence, *chosen);
}

void Loop::take_choice(const SequencePtr& sequence, const SampledToken& chosen) {
  if (!sequence->first) sequence->first = Clock::now();
  engine::answer::AnswerStream& answer = sequence->answer;
  try {
    if (auto token = answer.push(chosen)) {
      sequence->tokens.push_back(token->id);
      outbox_.token(sequence, std::move(*token));
      const std::lock_guard lock(mutex_);
      ++counts_.generated_tokens;
    }
  } catch (...) {
    sequence->error = std::current_exception();
  }
  if (answer.open() && sequence->past == options_.context) answer.end(FinishReason::length);
}

void Loop::end_those_done(const Passes::Result& result) {
  for (const auto& [sequence, chosen, error] : result.outcomes) {
    if (error || sequence->error)
      finish(sequence, error ? error : sequence->error);
    else if (chosen ? !sequence->answer.open() : !sequence->reading())  // or no answer was requested
      finish(sequence);
  }
}

void Loop::deliver() {
  publish();  // first, so that whoever learns that a request is done finds its slot free
  const std::int64_t done = outbox_.deliver();
  if (done == 0) return;
  const std::lock_guard lock(mutex_);
  pending_ -= done;
  changed_.notify_all();
}

void Loop::count_pages() {
  pages_spare_ = places_.spare_pages();
  pages_used_ = places_.pages() - places_.free_pages() - pages_spare_;
}

void Loop::publish() {
  std::vector<SchedulerState::Sequence> sequences;
  std::vector<Clock::time_point> arrivals;
  for (const auto* list : {&active_, &parked_})
    for (const SequencePtr& one : *list) {
      using Phase = SchedulerState::Phase;
      const Phase phase = one->slot       ? one->reading() ? Phase::reading : Phase::decoding
                          : one->past > 0 ? Phase::suspended
                                          : Phase::waiting;
      sequences.push_back({one->id, one->request.key, phase, one->prompt, std::min(one->past, one->prompt),
                           std::ssize(one->answer.result().ids), 0});
      arrivals.push_back(one->arrived);
    }
  const std::lock_guard lock(mutex_);
  counts_.sequences = std::move(sequences);
  counts_.waiting = std::ssize(queue_);
  counts_.cache_tokens_used = pages_used_ * state::kPageRows;
  counts_.remembered_tokens = pages_spare_ * state::kPageRows;
  counts_.memory_bytes = places_.host_bytes();
  counts_.disk_bytes = places_.disk_bytes();
  arrivals_ = std::move(arrivals);
}

}  // namespace sluice::scheduler
