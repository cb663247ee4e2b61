#include "sluice/session.h"

#include <algorithm>

#include "base/error.h"
#include "engine/engine_impl.h"
#include "layers/batch.h"

namespace sluice {

namespace {

constexpr ops::DType kId = ops::DType::i32;

}  // namespace

struct Session::Impl {
  std::shared_ptr<Engine> engine;
  std::int64_t chunk;  // tokens a pass at most
  state::StatePool pool;
  layers::Arena arena;
  ops::Buffer ids_buffer;
  ops::Buffer positions_buffer;
  ops::Buffer logits_buffer;
  std::vector<std::int32_t> tokens;
  std::vector<float> logits;
  bool broken = false;  // a pass failed half-way: states and tokens no longer agree

  Impl(std::shared_ptr<Engine> owner, std::int64_t capacity)
      : engine(std::move(owner)),
        chunk(std::min(engine->impl().options.prefill_chunk, capacity)),
        pool(backend(), decoder().states(), 1, capacity, engine->impl().cache_type()),
        arena(backend().allocate(decoder().activation_bytes(chunk, pool))),
        ids_buffer(backend().allocate(static_cast<std::size_t>(chunk) * size_bytes(kId))),
        positions_buffer(backend().allocate(static_cast<std::size_t>(chunk) * size_bytes(kId))),
        logits_buffer(backend().allocate(logits_bytes(1))) {}

  ops::Backend& backend() { return *engine->impl().backend; }
  const layers::Decoder& decoder() { return engine->impl().model.decoder; }
  std::size_t logits_bytes(std::int64_t rows) {
    return static_cast<std::size_t>(rows * decoder().vocab) * sizeof(float);
  }

  void check_tokens(std::span<const std::int32_t> added);
  // One pass over a chunk; the logits of its last `rows` tokens end up in `logits`.
  void forward(std::span<const std::int32_t> added, std::int64_t rows);
};

void Session::Impl::check_tokens(std::span<const std::int32_t> added) {
  if (broken) fail(ErrorKind::input, "this session failed before; reset or restore it first");
  const auto room = pool.capacity() - static_cast<std::int64_t>(tokens.size());
  if (static_cast<std::int64_t>(added.size()) > room)
    fail(ErrorKind::input, "{} tokens do not fit: {} of the context's {} are used", added.size(),
         tokens.size(), pool.capacity());
  for (const std::int32_t id : added)
    if (id < 0 || id >= decoder().vocab)
      fail(ErrorKind::input, "token id {} is outside the vocabulary, 0 to {}", id, decoder().vocab - 1);
}

void Session::Impl::forward(std::span<const std::int32_t> added, std::int64_t rows) {
  const auto count = static_cast<std::int64_t>(added.size());
  std::vector<std::int32_t> positions(added.size());
  for (std::size_t i = 0; i < positions.size(); ++i)
    positions[i] = static_cast<std::int32_t>(tokens.size() + i);
  backend().upload(ids_buffer.data(), added.data(), added.size_bytes());
  backend().upload(positions_buffer.data(), positions.data(), positions.size() * sizeof(std::int32_t));
  if (rows > 0 && logits_buffer.bytes() < logits_bytes(rows))
    logits_buffer = backend().allocate(logits_bytes(rows));
  layers::Batch batch;
  batch.tokens = count;
  batch.ids = ops::ConstView(ids_buffer.data(), kId, {count});
  batch.positions = ops::ConstView(positions_buffer.data(), kId, {count});
  batch.start = static_cast<std::int64_t>(tokens.size());
  const ops::View out =
      rows > 0 ? ops::View(logits_buffer.data(), ops::DType::f32, {rows, decoder().vocab}) : ops::View{};
  broken = true;  // until the pass is through
  layers::Device device(backend(), arena);
  decoder().forward(device, batch, pool, out);
  backend().synchronize();
  logits.resize(static_cast<std::size_t>(rows * decoder().vocab));
  backend().download(logits.data(), logits_buffer.data(), logits.size() * sizeof(float));
  tokens.insert(tokens.end(), added.begin(), added.end());
  broken = false;
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

std::unique_ptr<Session> Engine::new_session(std::int64_t capacity) {
  const std::int64_t longest = impl_->model.max_positions;
  if (capacity < 0 || capacity > longest)
    fail(ErrorKind::input, "a context of {} tokens is not possible, the model allows 1 to {}", capacity,
         longest);
  return std::unique_ptr<Session>(
      new Session(std::make_unique<Session::Impl>(shared_from_this(), capacity == 0 ? longest : capacity)));
}

std::size_t Engine::session_bytes(std::int64_t capacity) const {
  return state::StatePool::bytes(impl_->model.decoder.states(), 1, capacity, impl_->cache_type());
}

std::int64_t Session::length() const {
  return static_cast<std::int64_t>(impl_->tokens.size());
}
std::int64_t Session::capacity() const {
  return impl_->pool.capacity();
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

std::span<const float> Session::logits() const {
  const auto vocab = static_cast<std::size_t>(impl_->decoder().vocab);
  if (impl_->logits.size() < vocab) return {};
  return std::span<const float>(impl_->logits).last(vocab);
}

void Session::extend(std::span<const std::int32_t> tokens) {
  impl_->check_tokens(tokens);
  while (!tokens.empty()) {
    const auto count = std::min<std::size_t>(tokens.size(), static_cast<std::size_t>(impl_->chunk));
    impl_->forward(tokens.first(count), count == tokens.size() ? 1 : 0);
    tokens = tokens.subspan(count);
  }
}

void Session::extend(std::span<const std::int32_t> tokens,
                     const std::function<void(std::int64_t, std::span<const float>)>& row) {
  impl_->check_tokens(tokens);
  const auto vocab = static_cast<std::size_t>(impl_->decoder().vocab);
  while (!tokens.empty()) {
    const auto count = std::min<std::size_t>(tokens.size(), static_cast<std::size_t>(impl_->chunk));
    const std::int64_t position = length();
    impl_->forward(tokens.first(count), static_cast<std::int64_t>(count));
    for (std::size_t i = 0; i < count; ++i)
      row(position + static_cast<std::int64_t>(i),
          std::span<const float>(impl_->logits).subspan(i * vocab, vocab));
    impl_->logits.erase(impl_->logits.begin(), impl_->logits.end() - static_cast<std::ptrdiff_t>(vocab));
    tokens = tokens.subspan(count);
  }
}

void Session::reset() {
  impl_->pool.reset(0);
  impl_->tokens.clear();
  impl_->logits.clear();
  impl_->broken = false;
}

Snapshot Session::mark() {
  impl_->check_tokens({});
  Snapshot point;
  point.tokens_ = impl_->tokens;
  point.logits_ = impl_->logits;
  point.state_ = impl_->pool.save(0, length(), false);
  return point;
}

Snapshot Session::snapshot() {
  impl_->check_tokens({});
  Snapshot point;
  point.tokens_ = impl_->tokens;
  point.logits_ = impl_->logits;
  point.state_ = impl_->pool.save(0, length(), true);
  point.with_caches_ = true;
  return point;
}

void Session::restore(const Snapshot& snapshot) {
  if (!snapshot.with_caches_)
    fail(ErrorKind::input, "a mark holds no caches: rewind to it, or restore a snapshot");
  if (snapshot.length() > capacity())
    fail(ErrorKind::input, "a snapshot of {} tokens does not fit a context of {}", snapshot.length(),
         capacity());
  impl_->pool.load(0, snapshot.length(), true, snapshot.state_);
  impl_->tokens = snapshot.tokens_;
  impl_->logits = snapshot.logits_;
  impl_->broken = false;
}

void Session::rewind(const Snapshot& mark) {
  if (mark.with_caches_) return restore(mark);
  const bool prefix = mark.length() <= length() &&
                      std::equal(mark.tokens_.begin(), mark.tokens_.end(), impl_->tokens.begin());
  if (!prefix)
    fail(ErrorKind::input, "the timeline no longer begins with the {} tokens of the mark", mark.length());
  impl_->pool.load(0, mark.length(), false, mark.state_);
  impl_->tokens = mark.tokens_;
  impl_->logits = mark.logits_;
  impl_->broken = false;
}

}  // namespace sluice
