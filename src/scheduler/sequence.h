// One request from its arrival to its end.
#pragma once

#include <future>
#include <optional>

#include "base/integer_cast.h"
#include "engine/answer/answer_stream.h"
#include "engine/executor.h"
#include "scheduler/cancel.h"
#include "scheduler/fair_queue.h"
#include "scheduler/prefix/prefix_tree.h"
#include "sluice/scheduler.h"

namespace sluice::scheduler {

struct Sequence {
  Sequence(std::uint64_t number, const Engine& engine, Request asked, RequestCallbacks hears, bool apart)
      : id(number),
        request(std::move(asked)),
        callbacks(std::move(hears)),
        answer(engine, request.options),
        tokens(std::move(request.prompt)),
        prompt(std::ssize(tokens)),
        salt(apart ? prefix::salt_of(request.key, request.cache_salt) : prefix::salt_of(request.cache_salt)),
        exact(prompt) {
    report.tokens = prompt;
  }

  // Whether it need not wait for another sequence or for a disk.
  bool may_read() const { return reading() && leader == nullptr && !fetch; }

  bool reading() const { return past < prompt; }
  // Whether the log-probabilities of its prompt's tokens were requested.
  bool scored() const { return request.prompt_logprobs >= 0; }
  // Where the next chunk of its prompt must end, if that many states can be copied on the way.
  std::int64_t next_stop(std::int64_t copies) const {
    const auto fits = to_size(copies);
    return save_at.size() > fits ? save_at[fits] : prompt;
  }
  std::int64_t length() const { return std::ssize(tokens); }
  // The order of running: by priority, then by arrival.
  bool before(const Sequence& other) const {
    if (request.priority != other.request.priority) return request.priority > other.request.priority;
    return id < other.id;
  }

  const std::uint64_t id;
  Request request;
  const RequestCallbacks callbacks;
  const Cancel cancel = {};
  Clock::time_point arrived = Clock::now();
  Clock::time_point deadline = Clock::time_point::max();

  engine::answer::AnswerStream answer;
  std::vector<std::int32_t> tokens;  // the prompt, then what was generated
  const std::int64_t prompt;         // tokens of it
  const prefix::Salt salt;
  std::int64_t past = 0;  // tokens that are computed
  std::int64_t exact;     // of them, computed as parts of prompts

  std::optional<engine::Executor::Slot> slot;
  bool underway = false;         // its next token is in flight on other nodes
  std::int64_t departed = 0;     // the number of the last step that went to other nodes with it
  bool follows = false;          // the sampler in its slot has the tokens before the last
  std::vector<std::byte> saved;  // of a suspended one: rows and states of its past

  // Slow masks are computed separately, before the step that samples with them; others during it.
  bool slow_masks = false;
  std::future<std::span<const std::uint8_t>> mask;
  bool awaits_mask() const {
    return mask.valid() && mask.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  }

  // With reuse_decoded: the state after the last whole block of the answer.
  struct Answered {
    std::int64_t rows = 0;
    prefix::KeptState state;
  };
  Answered answered;

  PromptReport report;
  std::vector<SampledToken> scores;   // of its prompt's tokens after the first
  std::vector<std::int64_t> save_at;  // tokens of its prompt at which to save states, rising
  // Another sequence computes a common prefix up to here; this one waits until that is cached.
  std::shared_ptr<Sequence> leader;
  std::int64_t awaited = 0;
  // The same prompt, whose end the leader computes for both.
  bool twin_of(const Sequence& other) const { return leader.get() == &other && awaited == prompt; }
  // The part of its prompt that is being read from files.
  struct Fetch {
    std::shared_ptr<prefix::DiskStore::Reading> reading;
    std::int64_t paged = 0;   // rows that are in its pages already
    std::int64_t rows = 0;    // that will be there then
    std::int64_t exact = 0;   // of them, computed as parts of prompts
    prefix::KeptState state;  // unless it is the last part that is read
  };
  std::optional<Fetch> fetch;

  std::optional<Clock::time_point> began;  // to be read
  std::optional<Clock::time_point> first;  // token
  std::exception_ptr error;                // ends the request at the next opportunity
};

using SequencePtr = std::shared_ptr<Sequence>;

}  // namespace sluice::scheduler
