// A compiled grammar: its rules, and the engines that matchers have returned.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "grammar/automaton/engine.h"
#include "sluice/grammar.h"

namespace sluice {

struct Grammar::State {
  State(std::shared_ptr<const GrammarVocabulary> vocabulary_, const GrammarLimits& limits_)
      : vocabulary(std::move(vocabulary_)), limits(limits_), arena(limits_.terms), rules(limits_.nodes) {}

  // `write` adds the rules and returns the root.
  template <class Write>
  void compile(Write&& write) {
    grammar::StepClock clock(limits.compile_time, "to compile");
    arena.watch(&clock);
    grammar::regex::Lexer lexer(arena);
    const grammar::RuleId root = write(lexer);
    if (!rules.finish(root, lexer)) fail(ErrorKind::input, "no text matches the grammar");
    arena.watch(nullptr);
    arena.forget_derivatives();
  }

  std::shared_ptr<grammar::automaton::Engine> borrow() const {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        std::shared_ptr<grammar::automaton::Engine> engine = std::move(idle.back());
        idle.pop_back();
        return engine;
      }
    }
    return std::make_shared<grammar::automaton::Engine>(arena, rules, vocabulary->state(), limits);
  }
  void give_back(std::shared_ptr<grammar::automaton::Engine> engine) const {
    constexpr std::size_t kMaxIdle = 8;
    if (engine.use_count() > 1 || engine->worn_out()) return;
    const std::lock_guard lock(mutex);
    if (idle.size() < kMaxIdle) idle.push_back(std::move(engine));
  }

  std::shared_ptr<const GrammarVocabulary> vocabulary;
  GrammarLimits limits;
  grammar::regex::Arena arena;
  grammar::Rules rules;
  mutable std::mutex mutex;
  mutable std::vector<std::shared_ptr<grammar::automaton::Engine>> idle;
};

}  // namespace sluice
