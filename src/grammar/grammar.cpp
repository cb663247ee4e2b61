#include "sluice/grammar.h"

#include <algorithm>
#include <list>

#include "base/error.h"
#include "base/integer_cast.h"
#include "grammar/answer/answer_rules.h"
#include "grammar/ebnf/ebnf.h"
#include "grammar/grammar_state.h"
#include "grammar/json/string.h"
#include "grammar/regex/pattern.h"
#include "grammar/schema/compiler.h"
#include "sluice/answer.h"

namespace sluice {

using namespace grammar;

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
  RegexArena arena;
  Lexer lexer(arena);
  Rules rules;
  const RuleId rule = rules.add_rule("string");
  const NodeId end = rules.add_node(rule);
  rules.set_final(end);
  rules.add_lexeme(rules.start(rule), json_quoted(arena, arena.repeat(json_any_char(arena), 0)), end);
  rules.finish(rule, lexer);
  GrammarLimits limits;
  limits.step_time = std::chrono::minutes(10);  // this is preparation, not a step
  Engine engine(arena, rules, vocabulary, limits);
  engine.mask(engine.start());
  engine.mask(engine.step(engine.start(), "\""));
  const RegexId content = arena.concat(arena.repeat(json_any_char(arena), 0), arena.byte('"'));
  StepClock clock(limits.step_time, "for the strings of JSON");
  const RunTable table(*as_run(content, lexer), lexer, vocabulary.trie, vocabulary.bytes, clock);
  for (const std::uint32_t units : {kNoLimit, 16u, 8u}) {
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

std::string grammar::token_spelling(std::string_view name) {
  return kTokenMark + std::string(name) + kTokenMark;
}

GrammarVocabulary::GrammarVocabulary(std::span<const std::string_view> bytes,
                                     std::span<const std::int32_t> stop, std::span<const std::int32_t> named)
    : state_(std::make_unique<State>()) {
  build(*state_, bytes, {stop, named});
  prepare_strings(*state_);
}

GrammarVocabulary::GrammarVocabulary(std::span<const std::string> bytes, std::span<const std::int32_t> stop,
                                     std::span<const std::int32_t> named)
    : GrammarVocabulary(std::vector<std::string_view>(bytes.begin(), bytes.end()), stop, named) {}

GrammarVocabulary::~GrammarVocabulary() = default;

std::int32_t GrammarVocabulary::size() const {
  return state_->bytes.size();
}

namespace {

RuleId lexeme_rule(Rules& rules, RegexId regex) {
  const RuleId rule = rules.add_rule("root");
  const NodeId end = rules.add_node(rule);
  rules.set_final(end);
  rules.add_lexeme(rules.start(rule), regex, end);
  return rule;
}

RuleId compile(const GrammarSource& source, Grammar::State& state, Lexer& lexer) {
  RegexArena& arena = state.arena;
  if (source.text.size() > state.limits.source_bytes)
    fail(ErrorKind::resource, "a grammar of {} bytes, expected at most {}", source.text.size(),
         state.limits.source_bytes);
  switch (source.kind) {
    case GrammarSource::Kind::json:
      return SchemaCompiler(JsonValue::of(true), source.whitespace, state.rules, lexer).compile();
    case GrammarSource::Kind::json_schema:
      return SchemaCompiler(JsonValue::parse(source.text, state.limits.source_bytes), source.whitespace,
                            state.rules, lexer)
          .compile();
    case GrammarSource::Kind::regex:
      return lexeme_rule(state.rules, match_regex(arena, parse_pattern(source.text, {}), TextForm::utf8));
    case GrammarSource::Kind::ebnf:
      return compile_ebnf(source.text, state.rules, arena);
    case GrammarSource::Kind::choice:
      if (source.choices.empty()) fail(ErrorKind::input, "a choice needs at least one text");
      return lexeme_rule(state.rules, arena.literals(source.choices));
  }
  fail(ErrorKind::internal, "an unknown kind of grammar");
}

}  // namespace

Grammar::Grammar(const GrammarSource& source, std::shared_ptr<const GrammarVocabulary> vocabulary,
                 const GrammarLimits& limits)
    : state_(std::make_unique<State>(std::move(vocabulary), limits)) {
  state_->compile([&](Lexer& lexer) { return compile(source, *state_, lexer); });
}

Grammar::Grammar(const AnswerSource& source, std::shared_ptr<const GrammarVocabulary> vocabulary,
                 const GrammarLimits& limits)
    : state_(std::make_unique<State>(std::move(vocabulary), limits)) {
  state_->compile([&](Lexer& lexer) {
    std::optional<RuleId> content;
    if (source.content && !source.must_call) content = compile(*source.content, *state_, lexer);
    const AnswerRules::Parts parts{state_->rules, lexer, state_->vocabulary->state(),
                                   state_->limits.source_bytes};
    return AnswerRules(source, parts).compile(content);
  });
}

Grammar::~Grammar() = default;

const GrammarVocabulary& Grammar::vocabulary() const {
  return *state_->vocabulary;
}

struct GrammarCache::State {
  struct Entry {
    std::string key;
    std::shared_ptr<const Grammar> grammar;
  };
  std::shared_ptr<const GrammarVocabulary> vocabulary;
  std::size_t capacity;
  GrammarLimits limits;
  std::mutex mutex;
  std::list<Entry> entries;  // most recently used first
};

GrammarCache::GrammarCache(std::shared_ptr<const GrammarVocabulary> vocabulary, std::size_t capacity,
                           const GrammarLimits& limits)
    : state_(std::make_unique<State>()) {
  state_->vocabulary = std::move(vocabulary);
  state_->capacity = std::max<std::size_t>(capacity, 1);
  state_->limits = limits;
}

GrammarCache::~GrammarCache() = default;

namespace {

// A text that differs if sources differ.
class CacheKey {
 public:
  CacheKey& add(std::string_view text) {
    key_ += fmt::format("{}:", text.size());
    key_ += text;
    return *this;
  }
  template <class T>
  CacheKey& add_number(T value) {
    key_ += fmt::format("{} ", static_cast<int>(value));
    return *this;
  }
  CacheKey& add(const GrammarSource& source) {
    add_number(source.kind).add_number(source.whitespace).add_number(source.choices.size()).add(source.text);
    for (const std::string& choice : source.choices) add(choice);
    return *this;
  }
  CacheKey& add(const AnswerSource& source) {
    add_number(source.format.calls).add(source.format.think_open).add(source.format.think_close);
    add_number(source.thinking).add_number(source.must_call).add_number(source.parallel_calls);
    add_number(source.tools.size()).add_number(source.content.has_value());
    for (const AnswerTool& tool : source.tools) add(tool.name).add(tool.parameters).add_number(tool.strict);
    return source.content ? add(*source.content) : *this;
  }
  std::string take() { return std::move(key_); }

 private:
  std::string key_;
};

}  // namespace

std::shared_ptr<const Grammar> GrammarCache::get(const GrammarSource& source) {
  return get(CacheKey().add("text").add(source).take(), source);
}

std::shared_ptr<const Grammar> GrammarCache::get(const AnswerSource& source) {
  return get(CacheKey().add("answer").add(source).take(), source);
}

template <class Source>
std::shared_ptr<const Grammar> GrammarCache::get(std::string key, const Source& source) {
  const auto find = [&]() -> std::shared_ptr<const Grammar> {
    const auto found = std::ranges::find(state_->entries, key, &State::Entry::key);
    if (found == state_->entries.end()) return nullptr;
    state_->entries.splice(state_->entries.begin(), state_->entries, found);
    return found->grammar;
  };
  {
    const std::lock_guard lock(state_->mutex);
    if (auto grammar = find()) return grammar;
  }
  auto compiled = std::make_shared<const Grammar>(source, state_->vocabulary, state_->limits);
  const std::lock_guard lock(state_->mutex);
  if (auto grammar = find()) return grammar;  // another thread compiled it meanwhile
  state_->entries.push_front({std::move(key), compiled});
  if (state_->entries.size() > state_->capacity) state_->entries.pop_back();
  return compiled;
}

}  // namespace sluice
