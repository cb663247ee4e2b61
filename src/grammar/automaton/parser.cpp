#include "grammar/automaton/parser.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::grammar::automaton {
namespace {

constexpr CallersId kRoot = 0;  // the caller of the root rule: the text itself

std::uint64_t mix(std::uint64_t h, std::uint64_t value) {
  h = (h ^ value) * 0xFF51AFD7ED558CCDu;
  return h ^ h >> 32;
}

}  // namespace

Parser::Parser(const Rules& rules, regex::Lexer& lexer, StepClock& clock, std::size_t max_configs)
    : rules_(rules), lexer_(lexer), clock_(clock), max_configs_(max_configs) {
  callers_.emplace_back();
  intern_set(false);
}

void Parser::Places::add(Place place) {
  constexpr std::size_t kFew = 16;
  const auto key = [](Place at) { return std::uint64_t{at.node} << 32 | at.callers; };
  if (list_.size() < kFew) {
    if (std::ranges::find(list_, place) == list_.end()) list_.push_back(place);
    return;
  }
  if (!known_) {
    known_.emplace();
    for (const Place& at : list_) known_->insert(key(at), 0);
  }
  if (known_->find(key(place)) != regex::FlatMap::kAbsent) return;
  known_->insert(key(place), 0);
  list_.push_back(place);
}

SetId Parser::start() {
  found_.clear();
  calls_.clear();
  const Rule& root = rules_.rule(rules_.root());
  Places places({root.start, kRoot});
  for (std::size_t i = 0; i < places.size(); ++i) read_edges(places[i], places);
  enter_calls();
  return intern_set(root.nullable);
}

regex::LexState Parser::lexeme_start(regex::Id regex) {
  if (regex >= starts_.size()) starts_.resize(regex + 1, regex::Lexer::kDead);
  if (starts_[regex] == regex::Lexer::kDead) starts_[regex] = lexer_.state(regex);
  return starts_[regex];
}

void Parser::read_edges(Place place, Places& places) {
  clock_.poll(1 + rules_.node(place.node).edges.size());
  for (const Edge& edge : rules_.node(place.node).edges) {
    const Place next{edge.target, place.callers};
    switch (edge.kind) {
      case Edge::Kind::skip:
        places.add(next);
        break;
      case Edge::Kind::lexeme:
        found_.push_back({lexeme_start(edge.what), edge.target, place.callers});
        break;
      case Edge::Kind::call:
        calls_.push_back({rules_.rule(edge.what).rank, edge.what, next});
        break;
    }
  }
}

bool Parser::close(Places& places) {
  calls_.clear();
  bool can_stop = false;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place place = places[i];
    if (rules_.node(place.node).final) {
      can_stop |= place.callers == kRoot;
      clock_.poll(callers_[place.callers].size());
      for (const Place& back : callers_[place.callers]) places.add(back);
    }
    read_edges(place, places);
  }
  enter_calls();
  return can_stop;
}

// A rule that is entered consumes something, so it cannot end where it began, and calls lead to higher ranks:
// when the lowest rank is entered, all its callers are known.
void Parser::enter_calls() {
  std::ranges::make_heap(calls_, std::greater<>());
  std::vector<Place> callers;
  while (!calls_.empty()) {
    const RuleId rule = calls_.front().rule;
    callers.clear();
    while (!calls_.empty() && calls_.front().rule == rule) {
      std::ranges::pop_heap(calls_, std::greater<>());
      const Place back = calls_.back().back;
      calls_.pop_back();
      // Skip callers that would only return themselves (tail calls).
      const Node& node = rules_.node(back.node);
      if (node.final && node.edges.empty() && back.callers != kRoot) {
        const auto& beyond = callers_[back.callers];
        clock_.poll(beyond.size());
        callers.insert(callers.end(), beyond.begin(), beyond.end());
      } else {
        callers.push_back(back);
      }
    }
    const CallersId id = intern_callers(callers);
    Places places({rules_.rule(rule).start, id});
    const std::size_t known = calls_.size();
    for (std::size_t i = 0; i < places.size(); ++i) read_edges(places[i], places);
    for (std::size_t end = known + 1; end <= calls_.size(); ++end)
      std::push_heap(calls_.begin(), calls_.begin() + end, std::greater<>());
  }
}

CallersId Parser::intern_callers(std::vector<Place>& callers) {
  std::ranges::sort(callers);
  callers.erase(std::unique(callers.begin(), callers.end()), callers.end());
  std::uint64_t key = callers.size();
  for (const Place& place : callers) key = mix(key, std::uint64_t{place.node} << 32 | place.callers);
  for (key >>= 1;; ++key) {
    const std::uint32_t known = callers_ids_.find(key);
    if (known == regex::FlatMap::kAbsent) break;
    if (callers_[known] == callers) return known;
  }
  const CallersId id = callers_.size();
  callers_ids_.insert(key, id);
  callers_.push_back(callers);
  return id;
}

SetId Parser::intern_set(bool can_stop) {
  std::ranges::sort(found_);
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  std::uint64_t key = can_stop ? 1 : 2;
  for (const Config& config : found_)
    key = mix(mix(key, config.lex), std::uint64_t{config.target} << 32 | config.callers);
  for (key >>= 1;; ++key) {
    const std::uint32_t known = set_ids_.find(key);
    if (known == regex::FlatMap::kAbsent) break;
    if (sets_[known].can_stop == can_stop && std::ranges::equal(configs(known), found_)) return known;
  }
  if (configs_.size() + found_.size() > max_configs_)
    fail(ErrorKind::resource, "the grammar needs more than {} parser configurations", max_configs_);
  const SetId id = sets_.size();
  set_ids_.insert(key, id);
  sets_.push_back(
      {static_cast<std::uint32_t>(configs_.size()), static_cast<std::uint32_t>(found_.size()), can_stop});
  configs_.insert(configs_.end(), found_.begin(), found_.end());
  return id;
}

SetId Parser::make_step(SetId from, unsigned char byte) {
  found_.clear();
  Places ended;
  for (std::uint32_t i = 0; i < sets_[from].count; ++i) {
    const Config config = configs_[sets_[from].first + i];
    const regex::LexState lex = lexer_.next(config.lex, byte);
    if (lex == regex::Lexer::kDead) continue;
    if (lexer_.extensible(lex)) found_.push_back({lex, config.target, config.callers});
    if (!lexer_.accepting(lex)) continue;
    ended.add({config.target, config.callers});
  }
  const bool can_stop = close(ended);
  work_ += 1 + ended.size() + found_.size();
  const SetId to = found_.empty() && !can_stop ? kDead : intern_set(can_stop);
  steps_.insert(std::uint64_t{from} << 8 | byte, to);
  return to;
}

SetId Parser::after(const Config& config) {
  const std::uint64_t key = std::uint64_t{config.target} << 32 | config.callers;
  const SetId known = after_.find(key);
  if (known != regex::FlatMap::kAbsent) return known;
  found_.clear();
  Places places({config.target, config.callers});
  const bool can_stop = close(places);
  const SetId id = intern_set(can_stop);
  after_.insert(key, id);
  return id;
}

const regex::ByteSet& Parser::live(SetId at) {
  if (!sets_[at].has_live) {
    regex::ByteSet live;
    for (std::uint32_t i = 0; i < sets_[at].count; ++i)
      live |= lexer_.live(configs_[sets_[at].first + i].lex);
    sets_[at].live = live;
    sets_[at].has_live = true;
  }
  return sets_[at].live;
}

}  // namespace sluice::grammar::automaton
