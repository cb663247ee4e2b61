#include "grammar/automaton/engine.h"

#include "base/error.h"
#include "base/integer_cast.h"
#include "grammar/json/string.h"

namespace sluice::grammar::automaton {

Engine::Engine(const regex::Arena& arena, const Rules& rules, const GrammarVocabulary::State& vocabulary,
               const GrammarLimits& limits)
    : vocabulary_(vocabulary),
      limits_(limits),
      clock_(limits.step_time, "for one token"),
      arena_(arena),
      lexer_(arena_),
      parser_(rules, lexer_, clock_, limits.configurations),
      start_(parser_.start()),
      string_char_(lexer_.state(json::any_char(arena_))) {
  arena_.watch(&clock_);
}

void Engine::start_work() {
  work_before_ = parser_.work();
  clock_.start();
}

void Engine::check_work() {
  clock_.poll();
  if (parser_.work() - work_before_ > limits_.work_per_step)
    fail(ErrorKind::resource, "the grammar takes more than {} parser steps for one token",
         limits_.work_per_step);
}

SetId Engine::step(SetId from, std::string_view bytes) {
  start_work();
  for (const char byte : bytes) {
    from = parser_.step(from, byte);
    if (from == Parser::kDead) return from;
    check_work();
  }
  return from;
}

const BitMask& Engine::mask(SetId at) {
  constexpr std::size_t kMaxMasks = 512;
  if (const auto found = masks_.find(at); found != masks_.end()) return found->second;
  start_work();
  BitMask mask(vocabulary_.bytes.size());
  compute(at, mask);
  if (masks_.size() >= kMaxMasks) masks_.clear();
  return masks_.emplace(at, std::move(mask)).first->second;
}

bool Engine::allows(SetId at, std::int32_t token) {
  const std::string_view bytes = vocabulary_.bytes[to_size(token)];
  return !bytes.empty() && step(at, bytes) != Parser::kDead;
}

const Engine::Way& Engine::way(regex::LexState state) {
  if (state >= ways_.size()) ways_.resize(state + 64);
  if (ways_[state].kind == Way::Kind::unknown) {
    Way way;
    choose(state, way);
    ways_[state] = std::move(way);
  }
  return ways_[state];
}

// If few bytes can follow, a walk touches little of the vocabulary's trie; a table pays if many can, at once
// or after an opening quotation mark.
void Engine::choose(regex::LexState state, Way& way) {
  constexpr int kMany = 24;
  way.kind = Way::Kind::walk;
  const std::optional<Run> run = as_run(lexer_.regex(state), lexer_);
  if (run && lexer_.live(lexer_.state(run->unit)).count() >= kMany) {
    way.kind = Way::Kind::run;
    way.run = *run;
    way.run_table = run_table(*run);
    return;
  }
  const regex::ByteSet live = lexer_.live(state);
  bool many = live.count() >= kMany;
  if (live.count() == 1) many = lexer_.live(lexer_.next(state, live.first())).count() >= kMany;
  if (!many) return;
  way.kind = Way::Kind::table;
  way.table = lexeme_table(state, live.contains('a') ? find_slice(state) : nullptr);
}

// The largest slice whose tokens all stay inside the lexeme.
const Slice* Engine::find_slice(regex::LexState state) {
  std::uint32_t enough = 0;
  for (const Slice& slice : vocabulary_.string_chars)
    if (slice.units != regex::kNoLimit) enough = std::max(enough, slice.units);
  if (enough == 0) return nullptr;
  const std::uint32_t covered = covered_units(state, string_char_, enough, lexer_);
  for (const Slice& slice : vocabulary_.string_chars)
    if (slice.units <= covered) return &slice;
  return nullptr;
}

// The tokens outside a slice are walked quickly; a table without a slice is built once and shared by all
// grammars.
std::shared_ptr<const LexemeTable> Engine::lexeme_table(regex::LexState state, const Slice* slice) {
  constexpr std::size_t kMaxDescription = 32'768, kMaxShared = 64;
  if (slice != nullptr) {
    LexemeTable table = make_lexeme_table(state, lexer_, slice->remaining, vocabulary_.bytes, clock_);
    table.inside |= slice->inside;
    table.slice = slice;
    return std::make_shared<const LexemeTable>(std::move(table));
  }
  const std::string name = arena_.describe(lexer_.regex(state), kMaxDescription);
  {
    const std::lock_guard lock(vocabulary_.mutex);
    if (const auto found = vocabulary_.lexemes.find(name); found != vocabulary_.lexemes.end())
      return found->second;
  }
  auto table = std::make_shared<const LexemeTable>(
      make_lexeme_table(state, lexer_, vocabulary_.trie, vocabulary_.bytes, clock_));
  const std::lock_guard lock(vocabulary_.mutex);
  if (!name.empty() && vocabulary_.lexemes.size() < kMaxShared) vocabulary_.lexemes.emplace(name, table);
  return table;
}

std::shared_ptr<const RunTable> Engine::run_table(const Run& run) {
  constexpr std::size_t kMaxDescription = 4096, kMaxShared = 64;
  const std::array<regex::Id, 3> key = {run.prefix, run.unit, run.end};
  if (const auto found = run_tables_.find(key); found != run_tables_.end()) return found->second;
  std::string name;
  for (const regex::Id part : key) {
    const std::string description = arena_.describe(part, kMaxDescription);
    if (description.empty()) {  // without it, different runs would share a name
      name.clear();
      break;
    }
    name += description + '|';
  }
  {
    const std::lock_guard lock(vocabulary_.mutex);
    if (const auto found = vocabulary_.runs.find(name); found != vocabulary_.runs.end())
      return run_tables_[key] = found->second;
  }
  auto table = std::make_shared<const RunTable>(run, lexer_, vocabulary_.trie, vocabulary_.bytes, clock_);
  const std::lock_guard lock(vocabulary_.mutex);
  if (!name.empty() && name.size() < kMaxDescription && vocabulary_.runs.size() < kMaxShared)
    vocabulary_.runs.emplace(name, table);
  return run_tables_[key] = std::move(table);
}

void Engine::compute(SetId at, BitMask& mask) {
  const std::vector<Config> configs(parser_.configs(at).begin(), parser_.configs(at).end());
  bool walks = false;
  for (const Config& config : configs) {
    const Way& found = way(config.lex);
    walks |= found.kind == Way::Kind::walk;
    if (found.kind != Way::Kind::walk) add_after(config, found, mask);
  }
  if (!walks) return;
  const SetId rest = parser_.filtered(
      at, [this](const Config& config) { return ways_[config.lex].kind == Way::Kind::walk; });
  walk(vocabulary_.trie, 0, rest, nullptr, mask);
}

void Engine::add_after(const Config& config, const Way& way, BitMask& mask) {
  const SetId after = parser_.after(config);
  const bool ends_text = parser_.configs(after).empty();  // no token extends beyond the lexeme
  if (way.kind == Way::Kind::run) {
    const Units units{way.run.min, way.run.max};
    way.run_table->add_inside(units.max, mask);
    const TokenTrie& suffixes = way.run_table->suffixes();
    add_tokens(suffixes, suffixes.nodes()[0], &units, mask);
    walk(suffixes, 0, after, &units, mask);
    return;
  }
  mask |= way.table->inside;
  if (ends_text) return;
  if (!way.table->crossings.empty()) {
    const Slice* slice = way.table->slice;
    const TokenTrie& trie = slice != nullptr ? slice->remaining : vocabulary_.trie;
    for (const std::uint32_t node : way.table->crossings) walk(trie, node, after, nullptr, mask);
  } else {
    walk(way.table->suffixes, 0, after, nullptr, mask);
  }
}

void Engine::add_tokens(const TokenTrie& trie, const TokenTrie::Node& node, const Units* units,
                        BitMask& mask) {
  const std::span<const std::int32_t> tokens = trie.tokens(node);
  const std::span<const std::uint32_t> weights = trie.weights(node);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (units == nullptr || (weights[i] >= units->min && weights[i] <= units->max)) mask.set(tokens[i]);
}

// Adds the tokens below the node that the parser can follow from set `from`.
void Engine::walk(const TokenTrie& trie, std::uint32_t node, SetId from, const Units* units, BitMask& mask) {
  const std::span<const TokenTrie::Node> nodes = trie.nodes();
  const std::uint32_t end = nodes[node].end;
  if (end == node + 1) return;
  const regex::ByteSet live = parser_.live(from);
  for (std::uint32_t i = node + 1; i < end; i = nodes[i].end) {
    if (!live.contains(nodes[i].byte)) continue;
    const SetId to = parser_.step(from, nodes[i].byte);
    if (to == Parser::kDead) continue;
    add_tokens(trie, nodes[i], units, mask);
    if (nodes[i].end > i + 1) walk(trie, i, to, units, mask);
  }
  check_work();
}

}  // namespace sluice::grammar::automaton
