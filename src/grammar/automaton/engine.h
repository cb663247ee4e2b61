// The mutable half of matching: a parser over lazily built automata, and the masks computed so far. A matcher
// borrows an engine, and the grammar's next matcher reuses its caches.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "grammar/automaton/lexeme_table.h"
#include "grammar/automaton/parser.h"
#include "grammar/automaton/run_table.h"
#include "grammar/automaton/vocabulary.h"
#include "grammar/step_clock.h"

namespace sluice::grammar::automaton {

class Engine {
 public:
  Engine(const regex::Arena& arena, const Rules& rules, const GrammarVocabulary::State& vocabulary,
         const GrammarLimits& limits);

  // Must be held while calling the other members.
  std::mutex& mutex() { return mutex_; }

  // Called before the parser is used directly: restarts the limits on time and work per step.
  void start_work();
  SetId start() const { return start_; }
  SetId step(SetId from, std::string_view bytes);
  Parser& parser() { return parser_; }
  // The tokens that may come next, without stop tokens. Valid until the next call.
  const BitMask& mask(SetId at);
  bool allows(SetId at, std::int32_t token);
  // Whether the engine has grown so much that it should be replaced by a new one.
  bool worn_out() const { return parser_.size() > std::max(limits_.configurations / 4, 2 * needed_); }
  // The current size is needed for the text read so far, so the engine is not worn out before it is twice
  // that.
  void grown_to_now() { needed_ = parser_.size(); }

 private:
  // How the tokens that may follow a lexeme state are found.
  struct Way {
    enum class Kind : std::uint8_t { unknown, walk, table, run } kind = Kind::unknown;
    Run run = {};
    std::shared_ptr<const RunTable> run_table = nullptr;
    std::shared_ptr<const LexemeTable> table = nullptr;
  };
  struct Units {
    std::uint32_t min = 0, max = regex::kNoLimit;
  };

  const Way& way(regex::LexState state);
  void choose(regex::LexState state, Way& way);
  std::shared_ptr<const RunTable> run_table(const Run& run);
  std::shared_ptr<const LexemeTable> lexeme_table(regex::LexState state, const Slice* slice);
  const Slice* find_slice(regex::LexState state);
  void compute(SetId at, BitMask& mask);
  void add_after(const Config& config, const Way& way, BitMask& mask);
  void walk(const TokenTrie& trie, std::uint32_t node, SetId from, const Units* units, BitMask& mask);
  void add_tokens(const TokenTrie& trie, const TokenTrie::Node& node, const Units* units, BitMask& mask);
  void check_work();

  std::mutex mutex_;
  const GrammarVocabulary::State& vocabulary_;
  GrammarLimits limits_;
  StepClock clock_;
  regex::Arena arena_;
  regex::Lexer lexer_;
  Parser parser_;
  SetId start_;
  regex::LexState string_char_;
  std::size_t work_before_ = 0;
  std::size_t needed_ = 0;
  std::vector<Way> ways_;                                                           // by LexState
  std::map<std::array<regex::Id, 3>, std::shared_ptr<const RunTable>> run_tables_;  // by prefix, unit and end
  std::unordered_map<SetId, BitMask> masks_;
};

}  // namespace sluice::grammar::automaton
