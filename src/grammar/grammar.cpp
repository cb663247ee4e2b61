#include "sluice/grammar.h"

#include <algorithm>
#include <list>

#include "base/error.h"
#include "grammar/answer/answer_rules.h"
#include "grammar/ebnf/ebnf.h"
#include "grammar/grammar_state.h"
#include "grammar/json/value.h"
#include "grammar/regex/pattern.h"
#include "grammar/schema/compiler.h"
#include "sluice/answer.h"

namespace sluice::grammar {
namespace {

RuleId lexeme_rule(Rules& rules, regex::Id regex) {
  const RuleId rule = rules.add_rule("root");
  const NodeId end = rules.add_node(rule);
  rules.set_final(end);
  rules.add_lexeme(rules.start(rule), regex, end);
  return rule;
}

RuleId compile(const GrammarSource& source, Grammar::State& state, regex::Lexer& lexer) {
  regex::Arena& arena = state.arena;
  if (source.text.size() > state.limits.source_bytes)
    fail(ErrorKind::resource, "a grammar of {} bytes, expected at most {}", source.text.size(),
         state.limits.source_bytes);
  switch (source.kind) {
    case GrammarSource::Kind::json:
      return schema::Compiler(json::Value::of(true), source.whitespace, state.rules, lexer).compile();
    case GrammarSource::Kind::json_schema:
      return schema::Compiler(json::Value::parse(source.text, state.limits.source_bytes), source.whitespace,
                              state.rules, lexer)
          .compile();
    case GrammarSource::Kind::regex:
      return lexeme_rule(state.rules, regex::match_regex(arena, regex::parse_pattern(source.text, {}),
                                                         regex::TextForm::utf8));
    case GrammarSource::Kind::ebnf:
      return ebnf::compile(source.text, state.rules, arena);
    case GrammarSource::Kind::choice:
      if (source.choices.empty()) fail(ErrorKind::input, "a choice needs at least one text");
      return lexeme_rule(state.rules, arena.literals(source.choices));
  }
  fail(ErrorKind::internal, "an unknown kind of grammar");
}

}  // namespace
}  // namespace sluice::grammar

namespace sluice {

Grammar::Grammar(const GrammarSource& source, std::shared_ptr<const GrammarVocabulary> vocabulary,
                 const GrammarLimits& limits)
    : state_(std::make_unique<State>(std::move(vocabulary), limits)) {
  state_->compile([&](grammar::regex::Lexer& lexer) { return grammar::compile(source, *state_, lexer); });
}

Grammar::Grammar(const AnswerSource& source, std::shared_ptr<const GrammarVocabulary> vocabulary,
                 const GrammarLimits& limits)
    : state_(std::make_unique<State>(std::move(vocabulary), limits)) {
  state_->compile([&](grammar::regex::Lexer& lexer) {
    std::optional<grammar::RuleId> content;
    if (source.content && !source.must_call) content = grammar::compile(*source.content, *state_, lexer);
    const grammar::answer::AnswerRules::Parts parts{state_->rules, lexer, state_->vocabulary->state(),
                                                    state_->limits.source_bytes};
    return grammar::answer::AnswerRules(source, parts).compile(content);
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
