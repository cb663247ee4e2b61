#include "grammar/automaton/vocabulary.h"

#include <algorithm>
#include <list>

#include "base/error.h"
#include "base/integer_cast.h"
#include "grammar/automaton/engine.h"
#include "grammar/json/string.h"

namespace sluice::grammar::automaton {
namespace {

// Bytes that never occur in UTF-8: a token with one of them is never part of a text.
bool in_no_text(std::string_view token) {
  return std::ranges::any_of(token, [](char c) { return static_cast<unsigned char>(c) >= 0xF8; });
}

struct TokenRoles {
  std::span<const std::int32_t> stop, named;
};

void build(GrammarVocabulary::State& state, std::span<const std::string_view> bytes,
           const TokenRoles& roles) {
  std::vector<std::string_view> spelt(bytes.begin(), bytes.end());
  std::list<std::string> marked;
  for (std::string_view& token : spelt)
    if (in_no_text(token)) token = {};
  const auto index = [&](std::int32_t id, std::string_view role) {
    if (id < 0 || to_size(id) >= bytes.size())
      fail(ErrorKind::input, "{} token {} is not in the vocabulary of {}", role, id, bytes.size());
    return to_size(id);
  };
  for (const std::int32_t id : roles.named) {
    const std::string_view name = bytes[index(id, "named")];
    if (name.empty()) continue;
    state.named.emplace(name, id);
    spelt[index(id, "named")] = marked.emplace_back(token_spelling(name));
  }
  for (const std::int32_t id : roles.stop) {
    state.stop.push_back(id);
    spelt[index(id, "stop")] = {};  // stop tokens have no text
  }
  std::size_t size = 0;
  for (const std::string_view token : spelt) size += token.size();
  state.text.reserve(size);
  for (const std::string_view token : spelt) {
    state.bytes.emplace_back(state.text.data() + state.text.size(), token.size());
    state.text += token;
  }
  std::vector<TokenTrie::Entry> entries;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (!state.bytes[i].empty()) entries.push_back({state.bytes[i], static_cast<std::int32_t>(i), 0});
  state.trie = TokenTrie(std::move(entries));
}

// Nearly every grammar has JSON strings, so their tables are built in advance.
void prepare_strings(GrammarVocabulary::State& vocabulary) {
  regex::Arena arena;
  regex::Lexer lexer(arena);
  Rules rules;
  const RuleId rule = rules.add_rule("string");
  const NodeId end = rules.add_node(rule);
  rules.set_final(end);
  rules.add_lexeme(rules.start(rule), json::quoted(arena, arena.repeat(json::any_char(arena), 0)), end);
  rules.finish(rule, lexer);
  GrammarLimits limits;
  limits.step_time = std::chrono::minutes(10);  // this is preparation, not a step
  Engine engine(arena, rules, vocabulary, limits);
  engine.mask(engine.start());
  engine.mask(engine.step(engine.start(), "\""));
  const regex::Id content = arena.concat(arena.repeat(json::any_char(arena), 0), arena.byte('"'));
  StepClock clock(limits.step_time, "for the strings of JSON");
  const RunTable table(*as_run(content, lexer), lexer, vocabulary.trie, vocabulary.bytes, clock);
  for (const std::uint32_t units : {regex::kNoLimit, 16u, 8u}) {
    BitMask inside(vocabulary.bytes.size());
    table.add_inside(units, inside);
    std::vector<TokenTrie::Entry> remaining;
    for (std::size_t i = 0; i < vocabulary.bytes.size(); ++i) {
      const std::int32_t id = i;
      if (!vocabulary.bytes[i].empty() && !inside.test(id)) remaining.push_back({vocabulary.bytes[i], id, 0});
    }
    vocabulary.string_chars.push_back({units, std::move(inside), TokenTrie(std::move(remaining))});
  }
}

}  // namespace

std::string token_spelling(std::string_view name) {
  return kTokenMark + std::string(name) + kTokenMark;
}

}  // namespace sluice::grammar::automaton

namespace sluice {

GrammarVocabulary::GrammarVocabulary(std::span<const std::string_view> bytes,
                                     std::span<const std::int32_t> stop, std::span<const std::int32_t> named)
    : state_(std::make_unique<State>()) {
  grammar::automaton::build(*state_, bytes, {stop, named});
  grammar::automaton::prepare_strings(*state_);
}

GrammarVocabulary::GrammarVocabulary(std::span<const std::string> bytes, std::span<const std::int32_t> stop,
                                     std::span<const std::int32_t> named)
    : GrammarVocabulary(std::vector<std::string_view>(bytes.begin(), bytes.end()), stop, named) {}

GrammarVocabulary::~GrammarVocabulary() = default;

std::int32_t GrammarVocabulary::size() const {
  return state_->bytes.size();
}

}  // namespace sluice
