#include "grammar/regex/lexer.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::grammar {

Lexer::Lexer(RegexArena& arena, std::size_t max_search) : arena_(arena), max_search_(max_search) {
  state(RegexArena::kNothing);
}

LexState Lexer::state(RegexId regex) {
  const auto [found, added] = ids_.try_emplace(regex, static_cast<LexState>(states_.size()));
  if (added) states_.push_back({.regex = regex, .accepting = arena_.nullable(regex)});
  return found->second;
}

bool Lexer::extensible(LexState at) {
  const RegexId regex = states_[at].regex;
  if (regex == RegexArena::kNothing || regex == RegexArena::kEmpty) return false;
  if (!arena_.may_be_void(regex)) return true;
  return !live(at).empty();
}

std::uint32_t Lexer::classes_of(RegexId regex) {
  std::vector<ByteSet> sets;
  arena_.first_sets(regex, sets);
  const std::string key(reinterpret_cast<const char*>(sets.data()), sets.size() * sizeof(ByteSet));
  const auto [found, added] = classes_by_sets_.try_emplace(key, static_cast<std::uint32_t>(classes_.size()));
  if (!added) return found->second;
  Classes classes{};
  unsigned count = 1;
  for (const ByteSet& set : sets) {
    std::array<std::int16_t, 512> renamed;
    renamed.fill(-1);
    count = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const unsigned old = 2u * classes.of[byte] + (set.contains(static_cast<unsigned char>(byte)) ? 1 : 0);
      if (renamed[old] < 0) renamed[old] = static_cast<std::int16_t>(count++);
      classes.of[byte] = static_cast<std::uint8_t>(renamed[old]);
    }
  }
  classes.representatives.resize(count);
  for (unsigned byte = 0; byte < 256; ++byte)
    classes.representatives[classes.of[byte]] = static_cast<unsigned char>(byte);
  classes_.push_back(std::move(classes));
  return found->second;
}

void Lexer::classify(LexState from) {
  const std::uint32_t classes = classes_of(states_[from].regex);
  states_[from].classes = classes;
  states_[from].row = static_cast<std::uint32_t>(targets_.size());
  targets_.resize(targets_.size() + classes_[classes].representatives.size(), kUnknown);
}

LexState Lexer::derive(LexState from, std::size_t at, unsigned char byte) {
  const RegexId derived = arena_.derivative(states_[from].regex, byte);
  const LexState target = alive(derived) ? state(derived) : kDead;
  targets_[at] = target;
  return target;
}

ByteSet Lexer::live(LexState from) {
  if (states_[from].has_live) return states_[from].live;
  if (states_[from].classes == kNone) classify(from);
  const std::uint32_t classes = states_[from].classes;
  std::vector<bool> leads_on;
  for (std::size_t i = 0; i < classes_[classes].representatives.size(); ++i) {
    const unsigned char byte = classes_[classes].representatives[i];
    leads_on.push_back(next(from, byte) != kDead);
  }
  ByteSet live;
  for (unsigned byte = 0; byte < 256; ++byte)
    if (leads_on[classes_[classes].of[byte]]) live.add(static_cast<unsigned char>(byte));
  states_[from].live = live;
  states_[from].has_live = true;
  return states_[from].live;
}

bool Lexer::matches(RegexId regex, std::string_view text) {
  for (const char c : text) regex = arena_.derivative(regex, static_cast<unsigned char>(c));
  return arena_.nullable(regex);
}

bool Lexer::prefix_free(RegexId regex) {
  constexpr std::size_t kMaxStates = 64;
  const auto [known, added] = prefix_free_.try_emplace(regex, false);
  if (!added) return known->second;
  std::vector<LexState> seen = {state(regex)};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen.size() > kMaxStates) return false;
    if (accepting(seen[i]) && this->regex(seen[i]) != RegexArena::kEmpty) return false;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const LexState to = next(seen[i], static_cast<unsigned char>(byte));
      if (to != kDead && std::ranges::find(seen, to) == seen.end()) seen.push_back(to);
    }
  }
  return prefix_free_[regex] = true;
}

bool Lexer::alive(RegexId regex) {
  if (regex == RegexArena::kNothing) return false;
  if (!arena_.may_be_void(regex) || arena_.nullable(regex)) return true;
  if (const auto found = alive_.find(regex); found != alive_.end()) return found->second;
  return search(regex);
}

// Depth first until a term with the empty word; then all terms on the way have words too.
bool Lexer::search(RegexId regex) {
  struct Visit {
    RegexId regex;
    std::vector<RegexId> next;
  };
  std::vector<Visit> path;
  std::vector<RegexId> visited;
  const auto open = [&](RegexId id) {
    if (visited.size() >= max_search_) {
      for (const RegexId seen : visited) alive_.erase(seen);
      fail(ErrorKind::resource, "a regular expression of the grammar is too complex: more than {} terms",
           max_search_);
    }
    visited.push_back(id);
    alive_[id] = false;  // until proven otherwise; also keeps it from being visited again
    const std::uint32_t classes = classes_of(id);
    Visit visit{id, {}};
    for (std::size_t i = 0; i < classes_[classes].representatives.size(); ++i)
      visit.next.push_back(arena_.derivative(id, classes_[classes].representatives[i]));
    path.push_back(std::move(visit));
  };
  open(regex);
  while (!path.empty()) {
    if (path.back().next.empty()) {
      path.pop_back();
      continue;
    }
    const RegexId id = path.back().next.back();
    path.back().next.pop_back();
    if (id == RegexArena::kNothing) continue;
    const auto known = alive_.find(id);
    if (known != alive_.end() && !known->second) continue;
    if (known != alive_.end() || arena_.nullable(id) || !arena_.may_be_void(id)) {
      // What was visited and left behind may still reach a word through this path, so it is not known dead.
      for (const RegexId seen : visited) alive_.erase(seen);
      for (const Visit& visit : path) alive_[visit.regex] = true;
      return true;
    }
    open(id);
  }
  return false;
}

}  // namespace sluice::grammar
