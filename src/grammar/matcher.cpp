#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/integer_cast.h"
#include "base/quote.h"
#include "grammar/automaton/engine.h"
#include "grammar/grammar_state.h"
#include "sluice/grammar.h"

namespace sluice {

struct Matcher::State {
  std::shared_ptr<const Grammar> grammar;
  std::shared_ptr<grammar::automaton::Engine> engine;
  std::vector<grammar::automaton::SetId> path;  // the sets from the start to the current position
  std::vector<std::size_t> lengths;             // text length at each of them
  std::string text;
  bool finished = false;

  grammar::automaton::SetId now() const { return path.back(); }
  const GrammarVocabulary::State& vocabulary() const { return grammar->vocabulary().state(); }
};

Matcher::Matcher(std::shared_ptr<const Grammar> grammar) : state_(std::make_unique<State>()) {
  state_->engine = grammar->state().borrow();
  state_->grammar = std::move(grammar);
  state_->path.push_back(state_->engine->start());
  state_->lengths.push_back(0);
}

Matcher::~Matcher() {
  if (state_ != nullptr && state_->engine != nullptr)
    state_->grammar->state().give_back(std::move(state_->engine));
}

Matcher::Matcher(const Matcher& other) : state_(std::make_unique<State>(*other.state_)) {}
Matcher::Matcher(Matcher&& other) noexcept = default;
Matcher& Matcher::operator=(Matcher&& other) noexcept = default;

std::size_t Matcher::mask_words() const {
  return (state_->vocabulary().bytes.size() + 31) / 32;
}

void Matcher::mask(std::span<std::uint32_t> bits) {
  if (bits.size() != mask_words())
    fail(ErrorKind::input, "a mask of {} words, expected {}", bits.size(), mask_words());
  if (state_->finished) {
    std::ranges::fill(bits, 0u);
    return;
  }
  const std::lock_guard lock(state_->engine->mutex());
  std::ranges::copy(state_->engine->mask(state_->now()).words(), bits.begin());
  if (!state_->engine->parser().can_stop(state_->now())) return;
  for (const std::int32_t id : state_->vocabulary().stop) bits[to_size(id) >> 5] |= 1u << (id & 31);
}

bool Matcher::allows(std::int32_t token) {
  const GrammarVocabulary::State& vocabulary = state_->vocabulary();
  if (token < 0 || to_size(token) >= vocabulary.bytes.size() || state_->finished) return false;
  if (std::ranges::find(vocabulary.stop, token) != vocabulary.stop.end()) return can_stop();
  const std::lock_guard lock(state_->engine->mutex());
  return state_->engine->allows(state_->now(), token);
}

void Matcher::accept(std::int32_t token) {
  const GrammarVocabulary::State& vocabulary = state_->vocabulary();
  if (!allows(token)) fail(ErrorKind::input, "token {} does not fit the grammar here", token);
  const std::string_view bytes = vocabulary.bytes[to_size(token)];
  state_->finished = bytes.empty();
  accept_text(bytes);
}

std::size_t Matcher::accept_text(std::string_view text) {
  renew();
  const std::lock_guard lock(state_->engine->mutex());
  grammar::automaton::SetId now = state_->now();
  std::size_t read = 0;
  for (; read < text.size(); ++read) {
    const grammar::automaton::SetId next = state_->engine->step(now, text.substr(read, 1));
    if (next == grammar::automaton::Parser::kDead) break;
    now = next;
  }
  state_->path.push_back(now);
  state_->text += text.substr(0, read);
  state_->lengths.push_back(state_->text.size());
  return read;
}

// The engine's caches grow with the text; when they are too large, a new engine reads the text again.
void Matcher::renew() {
  if (!state_->engine->worn_out()) return;
  std::shared_ptr<grammar::automaton::Engine> fresh = state_->grammar->state().borrow();
  const std::lock_guard lock(fresh->mutex());
  grammar::automaton::SetId now = fresh->start();
  for (std::size_t i = 0; i < state_->path.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : state_->lengths[i - 1];
    now = fresh->step(now, std::string_view(state_->text).substr(begin, state_->lengths[i] - begin));
    state_->path[i] = now;
  }
  fresh->grown_to_now();
  state_->engine = std::move(fresh);
}

bool Matcher::can_stop() const {
  if (state_->finished) return false;
  const std::lock_guard lock(state_->engine->mutex());
  return state_->engine->parser().can_stop(state_->now());
}

bool Matcher::must_stop() {
  if (state_->finished) return true;
  const std::lock_guard lock(state_->engine->mutex());
  state_->engine->start_work();
  grammar::automaton::Parser& parser = state_->engine->parser();
  return parser.can_stop(state_->now()) && parser.live(state_->now()).empty();
}

bool Matcher::finished() const {
  return state_->finished;
}

std::optional<std::int32_t> Matcher::forced() {
  std::vector<std::uint32_t> bits(mask_words());
  mask(bits);
  std::optional<std::int32_t> found;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (bits[i] == 0) continue;
    if (found || std::popcount(bits[i]) > 1) return std::nullopt;
    found = static_cast<std::int32_t>(32 * i) + std::countr_zero(bits[i]);
  }
  return found;
}

std::string Matcher::forced_text(std::size_t limit) {
  std::string text;
  if (state_->finished) return text;
  const std::lock_guard lock(state_->engine->mutex());
  state_->engine->start_work();
  grammar::automaton::Parser& parser = state_->engine->parser();
  grammar::automaton::SetId now = state_->now();
  while (text.size() < limit && !parser.can_stop(now) && parser.live(now).count() == 1) {
    const unsigned char byte = parser.live(now).first();
    text += static_cast<char>(byte);
    now = parser.step(now, byte);
  }
  return text;
}

void Matcher::rollback(std::size_t count) {
  if (count >= state_->path.size())
    fail(ErrorKind::input, "cannot take back {} of {} steps", count, state_->path.size() - 1);
  if (count == 0) return;
  state_->path.resize(state_->path.size() - count);
  state_->lengths.resize(state_->path.size());
  state_->text.resize(state_->lengths.back());
  state_->finished = false;
}

}  // namespace sluice
