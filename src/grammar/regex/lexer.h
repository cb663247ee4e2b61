// The lazy automaton of all lexemes of a grammar: its states are regular expressions, and transitions are
// computed when first taken.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/regex/arena.h"

namespace sluice::grammar::regex {

using LexState = std::uint32_t;

class Lexer {
 public:
  static constexpr LexState kDead = 0;

  // The search for whether words are left visits at most this many terms.
  explicit Lexer(Arena& arena, std::size_t max_search = 100'000);

  LexState state(Id regex);
  LexState next(LexState from, unsigned char byte) {
    State& state = states_[from];
    if (state.classes == kNone) classify(from);
    const std::size_t at = states_[from].row + classes_[states_[from].classes].of[byte];
    return targets_[at] != kUnknown ? targets_[at] : derive(from, at, byte);
  }
  // Bytes of one class lead to the same state.
  unsigned byte_class(LexState from, unsigned char byte) {
    if (states_[from].classes == kNone) classify(from);
    return classes_[states_[from].classes].of[byte];
  }
  // The bytes that can follow.
  ByteSet live(LexState from);
  bool accepting(LexState at) const { return states_[at].accepting; }
  // Whether a longer word is possible.
  bool extensible(LexState at);
  Id regex(LexState at) const { return states_[at].regex; }
  Arena& arena() { return arena_; }
  // Whether the expression has a word.
  bool alive(Id regex);
  bool matches(Id regex, std::string_view text);
  // All words of the expression, if there are at most `max` and none is long.
  std::optional<std::vector<std::string>> words(Id regex, std::size_t max);
  // Whether no word of the expression is a prefix of another; also false if that takes long to find out.
  bool prefix_free(Id regex);
  std::size_t size() const { return states_.size(); }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0}, kUnknown = ~std::uint32_t{0};
  struct State {
    Id regex;
    bool accepting;
    bool has_live = false;
    std::uint32_t classes = kNone;  // into classes_
    std::uint32_t row = 0;          // into targets_, one entry per class
    ByteSet live = {};
  };
  // The bytes divided into classes of equal derivatives: each byte's class, and one byte of each class.
  struct Classes {
    std::array<std::uint8_t, 256> of;
    std::vector<unsigned char> representatives;
  };

  void classify(LexState from);
  std::uint32_t classes_of(Id regex);
  std::uint32_t find_classes(Id regex);
  LexState derive(LexState from, std::size_t at, unsigned char byte);
  bool collect_words(LexState from, std::size_t max, std::string& word, std::vector<std::string>& words);
  bool has_guessed_word(Id regex);
  bool search(Id regex);

  Arena& arena_;
  std::size_t max_search_;
  std::vector<State> states_;
  std::vector<LexState> targets_;
  std::vector<Classes> classes_;
  std::unordered_map<std::string, std::uint32_t> classes_by_sets_;
  std::vector<std::uint32_t> classes_by_regex_;
  std::unordered_map<Id, LexState> ids_;
  std::unordered_map<Id, bool> alive_, prefix_free_;
};

}  // namespace sluice::grammar::regex
