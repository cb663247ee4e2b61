#include "sluice/scheduler.h"

#include <atomic>
#include <cmath>
#include <future>

#include "base/error.h"
#include "scheduler/loop.h"
#include "scheduler/settle.h"
#include "sluice/ops/routing/sample.h"

namespace sluice {

std::string_view name(PromptReport::Reason reason) {
  constexpr std::string_view kNames[] = {"end", "differs", "unsaved", "evicted", "off"};
  return kNames[static_cast<std::size_t>(reason)];
}

struct Scheduler::Impl {
  Impl(std::shared_ptr<Engine> owner, const SchedulerOptions& asked)
      : engine(std::move(owner)), options(scheduler::settle(*engine, asked)), loop(*engine, options) {}

  void check(const Request& request) const;

  std::shared_ptr<Engine> engine;
  SchedulerOptions options;
  std::atomic<std::uint64_t> requests{0};
  scheduler::Loop loop;  // last, because it uses the others
};

void Scheduler::Impl::check(const Request& request) const {
  const std::int64_t vocab = engine->summary().vocab;
  if (request.prompt.empty()) fail(ErrorKind::input, "there is nothing to continue: the prompt is empty");
  if (static_cast<std::int64_t>(request.prompt.size()) > options.context)
    fail(ErrorKind::input, "a prompt of {} tokens does not fit a context of {}", request.prompt.size(),
         options.context);
  for (const std::int32_t id : request.prompt)
    if (id < 0 || id >= vocab)
      fail(ErrorKind::input, "token id {} is outside the vocabulary, 0 to {}", id, vocab - 1);
  if (request.prompt_logprobs < -1 || request.prompt_logprobs > ops::Sample::kMostLogprobs)
    fail(ErrorKind::input, "{} likely tokens in place of each of a prompt are not possible, -1 to {} are",
         request.prompt_logprobs, ops::Sample::kMostLogprobs);
  if (!(request.timeout_seconds >= 0) || std::isinf(request.timeout_seconds))
    fail(ErrorKind::input, "the timeout of a request is {} s, it must be 0 or more", request.timeout_seconds);
}

Scheduler::Scheduler(std::shared_ptr<Engine> engine, const SchedulerOptions& options) {
  if (engine == nullptr) fail(ErrorKind::input, "a scheduler needs an engine");
  impl_ = std::make_unique<Impl>(std::move(engine), options);
}
Scheduler::~Scheduler() = default;

Engine& Scheduler::engine() const {
  return *impl_->engine;
}
const SchedulerOptions& Scheduler::options() const {
  return impl_->options;
}

RequestHandle Scheduler::submit(Request request, RequestCallbacks callbacks) {
  impl_->check(request);
  const double seconds = request.timeout_seconds;
  const auto sequence =
      std::make_shared<scheduler::Sequence>(++impl_->requests, *impl_->engine, std::move(request),
                                            std::move(callbacks), impl_->options.cache_keys > 0);
  constexpr double kForever = 1e9;  // clocks overflow after some centuries
  if (seconds > 0 && seconds < kForever)
    sequence->deadline = sequence->arrived +
                         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  RequestHandle handle;
  handle.id_ = sequence->id;
  handle.cancel_ = [cancel = sequence->cancel] { cancel.cancel(); };
  impl_->loop.submit(sequence);
  return handle;
}

RequestResult Scheduler::run(Request request) {
  const auto result = std::make_shared<std::promise<RequestResult>>();
  submit(std::move(request), {.done = [result](const RequestResult& done) { result->set_value(done); }});
  return result->get_future().get();
}

SchedulerState Scheduler::state() const {
  return impl_->loop.state();
}

std::vector<RememberedPrefix> Scheduler::remembered(const std::string& key, const std::string& cache_salt,
                                                    std::size_t most) const {
  const bool apart = impl_->options.cache_keys > 0;
  return impl_->loop.remembered(
      apart ? scheduler::prefix::salt_of(key, cache_salt) : scheduler::prefix::salt_of(cache_salt), most);
}

void Scheduler::forget_prompts() {
  impl_->loop.forget_prompts();
}

void Scheduler::drain() {
  impl_->loop.drain();
}

}  // namespace sluice
