// Reads bytes by the rules. The parse state is a set of configurations: a lexeme being read, where its rule
// continues, and the rule's callers. Callers of one rule at one place are merged, as in an Earley parser, so
// ambiguity costs polynomial time; equal sets have equal ids, so steps are cached.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "grammar/regex/flat_map.h"
#include "grammar/rules.h"
#include "grammar/step_clock.h"

namespace sluice::grammar::automaton {

using SetId = std::uint32_t;
using CallersId = std::uint32_t;

struct Config {
  regex::LexState lex;
  NodeId target;      // where the rule continues after the lexeme
  CallersId callers;  // where to continue after the rule

  friend auto operator<=>(const Config&, const Config&) = default;
};

class Parser {
 public:
  static constexpr SetId kDead = 0;

  Parser(const Rules& rules, regex::Lexer& lexer, StepClock& clock, std::size_t max_configs);

  SetId start();
  SetId step(SetId from, unsigned char byte) {
    const std::uint64_t key = std::uint64_t{from} << 8 | byte;
    const SetId known = steps_.find(key);
    return known != regex::FlatMap::kAbsent ? known : make_step(from, byte);
  }
  // Whether the text may end here.
  bool can_stop(SetId at) const { return sets_[at].can_stop; }
  const regex::ByteSet& live(SetId at);
  std::span<const Config> configs(SetId at) const {
    return {configs_.data() + sets_[at].first, sets_[at].count};
  }
  // The set that follows when the configuration's lexeme ends.
  SetId after(const Config& config);
  // The subset for which `keep` holds.
  template <class Keep>
  SetId filtered(SetId at, Keep&& keep) {
    found_.clear();
    for (const Config& config : configs(at))
      if (keep(config)) found_.push_back(config);
    return intern_set(false);
  }
  // The number of configurations, to which memory is proportional.
  std::size_t size() const { return configs_.size(); }
  // Steps computed so far, for limits on time.
  std::size_t work() const { return work_; }

 private:
  struct Place {
    NodeId node;
    CallersId callers;

    friend auto operator<=>(const Place&, const Place&) = default;
  };
  // Distinct places in the order they were found.
  class Places {
   public:
    explicit Places(Place first) { add(first); }
    Places() = default;
    void add(Place place);
    std::size_t size() const { return list_.size(); }
    Place operator[](std::size_t i) const { return list_[i]; }

   private:
    std::vector<Place> list_;
    std::optional<regex::FlatMap> known_;  // set once there are many
  };
  struct Set {
    std::uint32_t first, count;
    bool can_stop;
    bool has_live = false;
    regex::ByteSet live = {};
  };
  struct Call {
    std::uint32_t rank;
    RuleId rule;
    Place back;

    friend auto operator<=>(const Call&, const Call&) = default;
  };

  SetId make_step(SetId from, unsigned char byte);
  // Adds what may be read from the places to found_, and returns whether the text may end there.
  bool close(Places& places);
  void enter_calls();
  void read_edges(Place place, Places& places);
  regex::LexState lexeme_start(regex::Id regex);
  SetId intern_set(bool can_stop);
  CallersId intern_callers(std::vector<Place>& callers);

  const Rules& rules_;
  regex::Lexer& lexer_;
  StepClock& clock_;
  std::size_t max_configs_;
  std::size_t work_ = 0;
  std::vector<Config> configs_;
  std::vector<Set> sets_;
  std::vector<std::vector<Place>> callers_;
  std::vector<regex::LexState> starts_;  // by Id
  regex::FlatMap steps_, set_ids_, callers_ids_, after_;
  std::vector<Config> found_;  // of the current step
  std::vector<Call> calls_;
};

}  // namespace sluice::grammar::automaton
