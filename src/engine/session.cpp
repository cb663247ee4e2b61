#include "sluice/session.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/integer_cast.h"
#include "engine/executor.h"
#include "sampling/settings.h"

namespace sluice {

using engine::Batch;
using engine::Executor;

struct Session::Impl {
  std::shared_ptr<Engine> engine;
  Executor& executor;
  std::int64_t capacity;
  Executor::Slot slot;
  std::vector<std::int32_t> tokens;
  std::vector<float> logits;  // of the last pass, unless they are still on the backend
  bool logits_read = true;
  std::int32_t sampled = -1;  // sampled but not appended yet
  bool broken = false;        // a pass failed midway: states and tokens no longer match

  Impl(std::shared_ptr<Engine> owner, std::int64_t longest)
      : engine(std::move(owner)),
        executor(*engine::core(*engine).executor),
        capacity(longest),
        slot(executor.open(longest)) {}

  std::int64_t vocab() { return engine::core(*engine).model.decoder.vocab; }
  engine::ForwardPass& pass() { return slot.pass(); }
  state::StatePool& pool() { return pass().pool(); }
  std::int64_t length() const { return std::ssize(tokens); }
  std::span<const float> last_logits();

  void check_tokens(std::span<const std::int32_t> added);
  // Runs one pass over tokens after the existing ones; stores the logits of the last `rows` in `logits`.
  void append(ops::Phase phase, std::span<const std::int32_t> added, std::int64_t rows);
  // Replaces the past.
  void load(const Snapshot& point, std::span<const std::byte> state, bool with_caches);
  void set_past(const std::vector<std::int32_t>& past, const std::vector<float>& last);
};

void Session::Impl::check_tokens(std::span<const std::int32_t> added) {
  if (broken) fail(ErrorKind::input, "this session failed before; reset or restore it first");
  const auto room = capacity - length();
  if (std::ssize(added) > room)
    fail(ErrorKind::input, "{} tokens do not fit: {} of the context's {} are used", added.size(),
         tokens.size(), capacity);
  for (const std::int32_t id : added)
    if (id < 0 || id >= vocab())
      fail(ErrorKind::input, "token id {} is outside the vocabulary, 0 to {}", id, vocab() - 1);
}

void Session::Impl::append(ops::Phase phase, std::span<const std::int32_t> added, std::int64_t rows) {
  broken = true;  // until the pass has completed
  executor.run([&] {
    pass().run({phase, {{slot.number(), length(), added, rows}}});
    pass().read_logits(logits);
  });
  logits_read = true;
  sampled = -1;
  tokens.insert(tokens.end(), added.begin(), added.end());
  broken = false;
}

std::span<const float> Session::Impl::last_logits() {
  const auto width = to_size(vocab());
  if (!logits_read) executor.run([&] { pass().take_logits(slot.number(), logits); });
  logits_read = true;
  if (logits.size() < width) return {};
  return std::span<const float>(logits).last(width);
}

void Session::Impl::set_past(const std::vector<std::int32_t>& past, const std::vector<float>& last) {
  tokens = past;
  logits = last;
  logits_read = true;
  sampled = -1;
  broken = false;
}

void Session::Impl::load(const Snapshot& point, std::span<const std::byte> state, bool with_caches) {
  executor.run([&] {
    pass().forget(slot.number());
    pool().load(slot.number(), point.length(), with_caches, state);
  });
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

std::unique_ptr<Session> Engine::new_session(std::int64_t capacity) {
  const std::int64_t longest = core_->model.max_positions;
  if (capacity < 0 || capacity > longest)
    fail(ErrorKind::input, "a context of {} tokens is not possible, the model allows 1 to {}", capacity,
         longest);
  return std::unique_ptr<Session>(
      new Session(std::make_unique<Session::Impl>(shared_from_this(), capacity == 0 ? longest : capacity)));
}

std::size_t Engine::session_bytes(std::int64_t capacity) const {
  return engine::ForwardPass::slot_bytes(core_->model.decoder, core_->settings, Executor::lone_extent(*core_),
                                         capacity);
}

std::size_t Engine::shared_bytes(std::int64_t capacity) const {
  return engine::Workspace::bytes(core_->model.decoder, core_->settings,
                                  std::min(core_->settings.prefill_chunk, capacity)) +
         engine::ForwardPass::bytes(core_->model.decoder, core_->settings, Executor::lone_extent(*core_));
}

std::size_t Engine::program_bytes() const {
  return engine::ForwardPass::program_bytes(core_->model.decoder, core_->settings,
                                            Executor::lone_extent(*core_));
}

EngineMemory Engine::memory() const {
  const Executor::Memory taken = core_->executor->memory();
  return {taken.groups, taken.workspace, taken.programs, core_->backend->allocated_bytes()};
}

std::int64_t Session::length() const {
  return impl_->length();
}
std::int64_t Session::capacity() const {
  return impl_->capacity;
}
std::size_t Session::bytes() const {
  return impl_->executor.run([&] { return impl_->pool().bytes(impl_->slot.number()); });
}
const std::vector<std::int32_t>& Session::tokens() const {
  return impl_->tokens;
}
Engine& Session::engine() {
  return *impl_->engine;
}

SampledToken Session::sample(const SamplingSettings& settings, std::int64_t candidates,
                             std::span<const std::uint8_t> allowed) {
  impl_->check_tokens({});
  if (length() == 0) fail(ErrorKind::input, "there is nothing to sample from: the session is empty");
  if (impl_->logits_read && impl_->logits.empty())
    fail(ErrorKind::input, "there is nothing to sample from: the prompt was stopped before its end");
  const engine::ForwardPass::Next last{impl_->slot.number(), static_cast<std::int32_t>(length() - 1),
                                       impl_->tokens.back()};
  const engine::SampleRequest request{settings, impl_->tokens, allowed};
  impl_->sampled = -1;
  SampledToken chosen = impl_->executor.run([&] {
    engine::ForwardPass& pass = impl_->pass();
    if (pass.logit_slots() != std::vector<std::int32_t>{last.slot})
      pass.put_logits(last.slot, impl_->last_logits());
    return std::move(pass.sample(std::span(&last, 1), std::span(&request, 1), candidates)[0]);
  });
  impl_->sampled = chosen.id;
  return chosen;
}

SampledToken Session::step_and_sample(const SamplingSettings& settings, std::int64_t candidates,
                                      std::span<const std::uint8_t> allowed) {
  if (impl_->sampled < 0) fail(ErrorKind::input, "there is no sampled token to append");
  const engine::ForwardPass::Next next{impl_->slot.number(), static_cast<std::int32_t>(length()),
                                       impl_->sampled};
  impl_->check_tokens(std::span(&next.id, 1));
  sampling::check(settings, candidates);
  impl_->broken = true;  // until the step has completed
  impl_->tokens.push_back(std::exchange(impl_->sampled, -1));
  impl_->logits_read = false;
  const engine::SampleRequest request{settings, impl_->tokens, allowed, true};
  SampledToken chosen = impl_->executor.run([&] {
    return std::move(
        impl_->pass().step_and_sample(std::span(&next, 1), std::span(&request, 1), candidates)[0]);
  });
  impl_->sampled = chosen.id;
  impl_->broken = false;
  return chosen;
}

std::span<const float> Session::logits() const {
  return impl_->last_logits();
}

void Session::extend(std::span<const std::int32_t> tokens) {
  extend(tokens, Progress());
}

bool Session::extend(std::span<const std::int32_t> tokens, const Progress& go_on) {
  impl_->check_tokens(tokens);
  const auto chunk = to_size(impl_->pass().chunk());
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t count = std::min(tokens.size() - done, chunk);
    const bool last = done + count == tokens.size();
    impl_->append(ops::Phase::prefill, tokens.subspan(done, count), last ? 1 : 0);
    done += count;
    if (!go_on) continue;
    const bool more = go_on(static_cast<std::int64_t>(done), std::ssize(tokens));
    if (!more && !last) return false;
  }
  return true;
}

void Session::extend(std::span<const std::int32_t> tokens,
                     const std::function<void(std::int64_t, std::span<const float>)>& row) {
  impl_->check_tokens(tokens);
  const auto vocab = to_size(impl_->vocab());
  while (!tokens.empty()) {
    const auto count = std::min<std::size_t>(tokens.size(), to_size(impl_->pass().chunk()));
    const std::int64_t position = length();
    impl_->append(ops::Phase::prefill, tokens.first(count), static_cast<std::int64_t>(count));
    for (std::size_t i = 0; i < count; ++i)
      row(position + static_cast<std::int64_t>(i),
          std::span<const float>(impl_->logits).subspan(i * vocab, vocab));
    impl_->logits.erase(impl_->logits.begin(), impl_->logits.end() - vocab);
    tokens = tokens.subspan(count);
  }
}

void Session::step(std::int32_t id) {
  impl_->check_tokens(std::span(&id, 1));
  impl_->append(ops::Phase::decode, std::span(&id, 1), 1);
}

void Session::reset() {
  impl_->executor.run([&] {
    impl_->pass().forget(impl_->slot.number());
    impl_->pool().reset(impl_->slot.number());
  });
  impl_->set_past({}, {});
}

Snapshot Session::save(bool with_caches) {
  impl_->check_tokens({});
  const std::span<const float> last = logits();
  Snapshot point;
  point.tokens_ = impl_->tokens;
  point.logits_.assign(last.begin(), last.end());
  point.state_ =
      impl_->executor.run([&] { return impl_->pool().save(impl_->slot.number(), length(), with_caches); });
  point.with_caches_ = with_caches;
  return point;
}

Snapshot Session::mark() {
  return save(false);
}

Snapshot Session::snapshot() {
  return save(true);
}

void Session::restore(const Snapshot& snapshot) {
  if (!snapshot.with_caches_)
    fail(ErrorKind::input, "a mark has no copy of the caches: rewind to it, or restore a snapshot");
  if (snapshot.length() > capacity())
    fail(ErrorKind::input, "a snapshot of {} tokens does not fit a context of {}", snapshot.length(),
         capacity());
  impl_->load(snapshot, snapshot.state_, true);
  impl_->set_past(snapshot.tokens_, snapshot.logits_);
}

void Session::rewind(const Snapshot& mark) {
  if (mark.with_caches_) return restore(mark);
  const bool prefix = mark.length() <= length() &&
                      std::equal(mark.tokens_.begin(), mark.tokens_.end(), impl_->tokens.begin());
  if (!prefix)
    fail(ErrorKind::input, "the timeline no longer begins with the {} tokens of the mark", mark.length());
  impl_->load(mark, mark.state_, false);
  impl_->set_past(mark.tokens_, mark.logits_);
}

}  // namespace sluice
