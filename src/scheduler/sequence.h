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
        salt(apart ? salt_of(request.key, request.cache_salt) : salt_of(request.cache_salt)),
        exact(prompt) {
    report.tokens = prompt;
  }

  // Neither another sequence nor a disk has to come up with something first.
  bool may_read() const { return reading() && leader == nullptr && !fetch; }

  bool reading() const { return past < prompt; }
  // Where the next chunk of its prompt ends at the latest, if so many states can be copied on the way.
  std::int64_t next_stop(std::int64_t copies) const {
    const auto fits = to_size(copies);
    return save_at.size() > fits ? save_at[fits] : prompt;
  }
  std::int64_t length() const { return std::ssize(tokens); }
  // Who runs before whom: by priority, then by arrival.
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

  engine::AnswerStream answer;
  std::vector<std::int32_t> tokens;  // the prompt, then what was generated
  const std::int64_t prompt;         // tokens of it
  const Salt salt;
  std::int64_t past = 0;  // tokens that are computed
  std::int64_t exact;     // the first so many as parts of prompts, as all those before them

  std::optional<engine::Executor::Slot> slot;
  bool underway = false;         // other nodes work on its next token
  std::int64_t departed = 0;     // the number of the last step that went to other nodes with it
  bool follows = false;          // the sampler in its slot knows the tokens before the last
  std::vector<std::byte> saved;  // of a suspended one: rows and states of its past

  // Masks that take long are made apart, before the step that chooses by them; others during it.
  bool slow_masks = false;
  std::future<std::span<const std::uint8_t>> mask;
  bool awaits_mask() const {
    return mask.valid() && mask.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  }

  // What the answer left behind the last whole block of it, where answers are gone on from.
  struct Answered {
    std::int64_t rows = 0;
    KeptState state;
  };
  Answered answered;

  PromptReport report;
  std::vector<std::int64_t> save_at;  // tokens of its prompt at which it is to be remembered, rising
  // Another one reads what it could share, as far as this; it waits until that is remembered.
  std::shared_ptr<Sequence> leader;
  std::int64_t awaited = 0;
  // The same prompt, whose end the leader computes for both.
  bool twin_of(const Sequence& other) const { return leader.get() == &other && awaited == prompt; }
  // What is being read of its prompt from files.
  struct Fetch {
    std::shared_ptr<DiskStore::Reading> reading;
    std::int64_t paged = 0;  // rows that are in its pages already
    std::int64_t rows = 0;   // that will be there then
    std::int64_t exact = 0;  // of them, computed as parts of prompts
    KeptState state;         // unless it is the last part that is read
  };
  std::optional<Fetch> fetch;

  std::optional<Clock::time_point> began;  // to be read
  std::optional<Clock::time_point> first;  // token
  std::exception_ptr error;                // that ends it at the next occasion
};

using SequencePtr = std::shared_ptr<Sequence>;

}  // namespace sluice::scheduler
