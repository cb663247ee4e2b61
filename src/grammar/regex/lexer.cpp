#include "grammar/regex/lexer.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::grammar::regex {

Lexer::Lexer(Arena& arena, std::size_t max_search) : arena_(arena), max_search_(max_search) {
  state(Arena::kNothing);
}

LexState Lexer::state(Id regex) {
  const auto [found, added] = ids_.try_emplace(regex, static_cast<LexState>(states_.size()));
  if (added) states_.push_back({.regex = regex, .accepting = arena_.nullable(regex)});
  return found->second;
}

bool Lexer::extensible(LexState at) {
  const Id regex = states_[at].regex;
  if (regex == Arena::kNothing || regex == Arena::kEmpty) return false;
  if (!arena_.may_be_void(regex)) return true;
  return !live(at).empty();
}

std::uint32_t Lexer::classes_of(Id regex) {
  if (regex >= classes_by_regex_.size()) classes_by_regex_.resize(2 * std::size_t{regex} + 64, kNone);
  if (classes_by_regex_[regex] == kNone) classes_by_regex_[regex] = find_classes(regex);
  return classes_by_regex_[regex];
}

std::uint32_t Lexer::find_classes(Id regex) {
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
      const unsigned old = 2u * classes.of[byte] + (set.contains(byte) ? 1 : 0);
      if (renamed[old] < 0) renamed[old] = count++;
      classes.of[byte] = renamed[old];
    }
  }
  classes.representatives.resize(count);
  for (unsigned byte = 0; byte < 256; ++byte) classes.representatives[classes.of[byte]] = byte;
  classes_.push_back(std::move(classes));
  return found->second;
}

void Lexer::classify(LexState from) {
  const std::uint32_t classes = classes_of(states_[from].regex);
  states_[from].classes = classes;
  states_[from].row = targets_.size();
  targets_.resize(targets_.size() + classes_[classes].representatives.size(), kUnknown);
}

LexState Lexer::derive(LexState from, std::size_t at, unsigned char byte) {
  // One byte represents its class, so that cached derivatives are found.
  const Classes& classes = classes_[states_[from].classes];
  const Id derived = arena_.derivative(states_[from].regex, classes.representatives[classes.of[byte]]);
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
    if (leads_on[classes_[classes].of[byte]]) live.add(byte);
  states_[from].live = live;
  states_[from].has_live = true;
  return states_[from].live;
}

bool Lexer::matches(Id regex, std::string_view text) {
  for (const char c : text) regex = arena_.derivative(regex, c);
  return arena_.nullable(regex);
}

std::optional<std::vector<std::string>> Lexer::words(Id regex, std::size_t max) {
  std::vector<std::string> words;
  std::string word;
  if (!alive(regex) || collect_words(state(regex), max, word, words)) return words;
  return std::nullopt;
}

bool Lexer::collect_words(LexState from, std::size_t max, std::string& word,
                          std::vector<std::string>& words) {
  constexpr std::size_t kLongest = 256;
  if (accepting(from)) words.push_back(word);
  if (words.size() > max || word.size() > kLongest) return false;
  const ByteSet bytes = live(from);
  if (bytes.count() > static_cast<int>(max)) return false;
  for (unsigned value = 0; value < 256; ++value) {
    const unsigned char byte = value;
    if (!bytes.contains(byte)) continue;
    word.push_back(byte);
    const bool listed = collect_words(next(from, byte), max, word, words);
    word.pop_back();
    if (!listed) return false;
  }
  return true;
}

bool Lexer::prefix_free(Id regex) {
  constexpr std::size_t kMaxStates = 64;
  const auto [known, added] = prefix_free_.try_emplace(regex, false);
  if (!added) return known->second;
  std::vector<LexState> seen = {state(regex)};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen.size() > kMaxStates) return false;
    if (accepting(seen[i]) && this->regex(seen[i]) != Arena::kEmpty) return false;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const LexState to = next(seen[i], byte);
      if (to != kDead && std::ranges::find(seen, to) == seen.end()) seen.push_back(to);
    }
  }
  return prefix_free_[regex] = true;
}

bool Lexer::alive(Id regex) {
  if (regex == Arena::kNothing) return false;
  if (!arena_.may_be_void(regex) || arena_.nullable(regex)) return true;
  if (const auto found = alive_.find(regex); found != alive_.end()) return found->second;
  return has_guessed_word(regex) || search(regex);
}

bool Lexer::has_guessed_word(Id regex) {
  constexpr std::size_t kLongest = 256;
  std::string word;
  if (!arena_.guess_word(regex, kLongest, word)) return false;
  std::vector<Id> way = {regex};
  for (const char c : word) {
    const Id id = arena_.derivative(way.back(), static_cast<unsigned char>(c));
    if (id == Arena::kNothing) return false;
    if (arena_.nullable(id) || !arena_.may_be_void(id)) {
      for (const Id passed : way) alive_[passed] = true;
      return true;
    }
    const auto known = alive_.find(id);
    if (known != alive_.end() && !known->second) return false;
    way.push_back(id);
    if (known == alive_.end()) continue;
    for (const Id passed : way) alive_[passed] = true;
    return true;
  }
  return false;
}

// Alternates between two orders: breadth first, so that a short word ends the search and repetitions with
// large bounds are not unrolled, and nearest word first, for conditions that require long words. If there is
// a word, all terms on the path to it have words too.
bool Lexer::search(Id regex) {
  struct Visit {
    Id regex;
    std::uint32_t from;
    bool done;
  };
  using Candidate = std::pair<std::uint64_t, std::uint32_t>;  // effort, index
  std::vector<Visit> found = {{regex, 0, false}};
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> nearest;
  std::unordered_set<Id> seen = {regex};
  const auto visit = [&](std::uint32_t i) {
    if (std::exchange(found[i].done, true)) return false;
    const std::uint32_t classes = classes_of(found[i].regex);
    for (std::size_t c = 0; c < classes_[classes].representatives.size(); ++c) {
      const Id id = arena_.derivative(found[i].regex, classes_[classes].representatives[c]);
      if (id == Arena::kNothing || !seen.insert(id).second) continue;
      const auto known = alive_.find(id);
      if (known != alive_.end() && !known->second) continue;
      if (known != alive_.end() || arena_.nullable(id) || !arena_.may_be_void(id)) {
        for (std::uint32_t at = i; at != 0; at = found[at].from) alive_[found[at].regex] = true;
        return alive_[regex] = true;
      }
      nearest.emplace(arena_.effort(id), to_unsigned(found.size()));
      found.push_back({id, i, false});
      if (found.size() > max_search_)
        fail(ErrorKind::resource, "a regular expression of the grammar is too complex: more than {} terms",
             max_search_);
    }
    return false;
  };
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    if (visit(i)) return true;
    if (nearest.empty()) continue;
    const std::uint32_t next = nearest.top().second;
    nearest.pop();
    if (visit(next)) return true;
  }
  for (const Visit& visit : found) alive_[visit.regex] = false;
  return false;
}

}  // namespace sluice::grammar::regex
