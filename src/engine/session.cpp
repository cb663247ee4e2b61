#include "sluice/session.h"

#include <algorithm>

#include "base/error.h"
#include "engine/forward_pass.h"

namespace sluice {

struct Session::Impl {
  std::shared_ptr<Engine> engine;
  engine::ForwardPass pass;
  std::vector<std::int32_t> tokens;
  std::vector<float> logits;  // of the last pass, unless they are still where it left them
  bool logits_read = true;
  std::int32_t sampled = -1;  // chosen and not appended yet
  bool broken = false;        // a pass failed half-way: states and tokens no longer agree

  Impl(std::shared_ptr<Engine> owner, std::int64_t capacity)
      : engine(std::move(owner)),
        pass(engine::core(*engine), 1, capacity,
             std::min(engine::core(*engine).settings.prefill_chunk, capacity)) {}

  std::int64_t vocab() { return engine::core(*engine).model.decoder.vocab; }
  state::StatePool& pool() { return pass.pool(); }

  void check_tokens(std::span<const std::int32_t> added);
  // One pass over a chunk; the logits of its last `rows` tokens end up in `logits`.
  void prefill(std::span<const std::int32_t> added, std::int64_t rows);
  void step(std::int32_t id);
  // Runs `choose` and keeps what it chose.
  template <class F>
  std::int32_t choose(F&& choose) {
    broken = true;
    sampled = choose();
    broken = false;
    return sampled;
  }
};

void Session::Impl::check_tokens(std::span<const std::int32_t> added) {
  if (broken) fail(ErrorKind::input, "this session failed before; reset or restore it first");
  const auto room = pool().capacity() - static_cast<std::int64_t>(tokens.size());
  if (static_cast<std::int64_t>(added.size()) > room)
    fail(ErrorKind::input, "{} tokens do not fit: {} of the context's {} are used", added.size(),
         tokens.size(), pool().capacity());
  for (const std::int32_t id : added)
    if (id < 0 || id >= vocab())
      fail(ErrorKind::input, "token id {} is outside the vocabulary, 0 to {}", id, vocab() - 1);
}

void Session::Impl::prefill(std::span<const std::int32_t> added, std::int64_t rows) {
  broken = true;  // until the pass is through
  pass.prefill(0, static_cast<std::int64_t>(tokens.size()), added, rows);
  pass.read_logits(logits);
  logits_read = true;
  sampled = -1;
  tokens.insert(tokens.end(), added.begin(), added.end());
  broken = false;
}

void Session::Impl::step(std::int32_t id) {
  broken = true;
  const engine::ForwardPass::Next next{0, static_cast<std::int32_t>(tokens.size()), id};
  pass.step(std::span(&next, 1));
  pass.read_logits(logits);
  logits_read = true;
  sampled = -1;
  tokens.push_back(id);
  broken = false;
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
  return state::bytes_of(core_->model.decoder.states(), {1, capacity}, core_->settings.cache);
}

std::int64_t Session::length() const {
  return static_cast<std::int64_t>(impl_->tokens.size());
}
std::int64_t Session::capacity() const {
  return impl_->pool().capacity();
}
std::size_t Session::bytes() const {
  return impl_->engine->session_bytes(capacity());
}
const std::vector<std::int32_t>& Session::tokens() const {
  return impl_->tokens;
}
Engine& Session::engine() {
  return *impl_->engine;
}

std::int32_t Session::sample(const SamplingSettings& settings, std::int64_t candidates) {
  impl_->check_tokens({});
  if (length() == 0) fail(ErrorKind::input, "there is nothing to sample from: the session is empty");
  const auto position = static_cast<std::int32_t>(length() - 1);
  return impl_->choose([&] { return impl_->pass.sample(std::span(&position, 1), settings, candidates)[0]; });
}

std::int32_t Session::step_and_sample(const SamplingSettings& settings, std::int64_t candidates) {
  if (impl_->sampled < 0) fail(ErrorKind::input, "no token is sampled that could be appended");
  const std::int32_t appended = impl_->sampled;
  impl_->check_tokens(std::span(&appended, 1));
  const std::int32_t next =
      impl_->choose([&] { return impl_->pass.step_and_sample(settings, candidates)[0]; });
  impl_->tokens.push_back(appended);
  impl_->logits_read = false;
  return next;
}

std::span<const float> Session::logits() const {
  if (!impl_->logits_read) {
    impl_->pass.read_logits(impl_->logits);
    impl_->logits_read = true;
  }
  const auto vocab = static_cast<std::size_t>(impl_->vocab());
  if (impl_->logits.size() < vocab) return {};
  return std::span<const float>(impl_->logits).last(vocab);
}

void Session::extend(std::span<const std::int32_t> tokens) {
  impl_->check_tokens(tokens);
  while (!tokens.empty()) {
    const auto count = std::min<std::size_t>(tokens.size(), static_cast<std::size_t>(impl_->pass.chunk()));
    impl_->prefill(tokens.first(count), count == tokens.size() ? 1 : 0);
    tokens = tokens.subspan(count);
  }
}

void Session::extend(std::span<const std::int32_t> tokens,
                     const std::function<void(std::int64_t, std::span<const float>)>& row) {
  impl_->check_tokens(tokens);
  const auto vocab = static_cast<std::size_t>(impl_->vocab());
  while (!tokens.empty()) {
    const auto count = std::min<std::size_t>(tokens.size(), static_cast<std::size_t>(impl_->pass.chunk()));
    const std::int64_t position = length();
    impl_->prefill(tokens.first(count), static_cast<std::int64_t>(count));
    for (std::size_t i = 0; i < count; ++i)
      row(position + static_cast<std::int64_t>(i),
          std::span<const float>(impl_->logits).subspan(i * vocab, vocab));
    impl_->logits.erase(impl_->logits.begin(), impl_->logits.end() - static_cast<std::ptrdiff_t>(vocab));
    tokens = tokens.subspan(count);
  }
}

void Session::step(std::int32_t id) {
  impl_->check_tokens(std::span(&id, 1));
  impl_->step(id);
}

void Session::reset() {
  impl_->pool().reset(0);
  impl_->tokens.clear();
  impl_->logits.clear();
  impl_->logits_read = true;
  impl_->sampled = -1;
  impl_->broken = false;
}

Snapshot Session::mark() {
  impl_->check_tokens({});
  Snapshot point;
  point.tokens_ = impl_->tokens;
  logits();
  point.logits_ = impl_->logits;
  point.state_ = impl_->pool().save(0, length(), false);
  return point;
}

Snapshot Session::snapshot() {
  impl_->check_tokens({});
  Snapshot point;
  point.tokens_ = impl_->tokens;
  logits();
  point.logits_ = impl_->logits;
  point.state_ = impl_->pool().save(0, length(), true);
  point.with_caches_ = true;
  return point;
}

void Session::restore(const Snapshot& snapshot) {
  if (!snapshot.with_caches_)
    fail(ErrorKind::input, "a mark holds no caches: rewind to it, or restore a snapshot");
  if (snapshot.length() > capacity())
    fail(ErrorKind::input, "a snapshot of {} tokens does not fit a context of {}", snapshot.length(),
         capacity());
  impl_->pool().load(0, snapshot.length(), true, snapshot.state_);
  impl_->tokens = snapshot.tokens_;
  impl_->logits = snapshot.logits_;
  impl_->logits_read = true;
  impl_->sampled = -1;
  impl_->broken = false;
}

void Session::rewind(const Snapshot& mark) {
  if (mark.with_caches_) return restore(mark);
  const bool prefix = mark.length() <= length() &&
                      std::equal(mark.tokens_.begin(), mark.tokens_.end(), impl_->tokens.begin());
  if (!prefix)
    fail(ErrorKind::input, "the timeline no longer begins with the {} tokens of the mark", mark.length());
  impl_->pool().load(0, mark.length(), false, mark.state_);
  impl_->tokens = mark.tokens_;
  impl_->logits = mark.logits_;
  impl_->logits_read = true;
  impl_->sampled = -1;
  impl_->broken = false;
}

}  // namespace sluice
