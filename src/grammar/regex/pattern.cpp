// Converts a syntax tree to an expression, from right to left, because assertions apply to everything that
// follows.
#include "grammar/regex/pattern.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "grammar/json/string.h"

namespace sluice::grammar::regex {
namespace {

// What may follow, depending on the character before it, for word boundaries. The begin of the text counts as
// no word character.
struct Rest {
  Id after_word, after_other;

  bool same() const { return after_word == after_other; }
};

Rest alike(Id rest) {
  return {rest, rest};
}

class PatternBuilder {
 public:
  PatternBuilder(Arena& arena, TextForm form) : arena_(arena), form_(form) {
    any_ = arena.repeat(chars(CharSet::all()), 0);
  }

  Id any() const { return any_; }
  Id chars(const CharSet& set) {
    return form_ == TextForm::utf8 ? utf8_regex(arena_, set) : json::char_regex(arena_, set);
  }

  // The pattern followed by `rest`, which extends to the end of the text.
  Rest build(const Pattern& pattern, Rest rest, bool at_begin) {
    switch (pattern.kind) {
      case Pattern::Kind::empty:
        return rest;
      case Pattern::Kind::chars:
        if (rest.same()) return alike(arena_.concat(chars(pattern.chars), rest.after_other));
        return alike(arena_.any_of(
            {arena_.concat(chars(pattern.chars.intersection(word_characters())), rest.after_word),
             arena_.concat(chars(pattern.chars.minus(word_characters())), rest.after_other)}));
      case Pattern::Kind::concat:
        return build_sequence(pattern, rest, at_begin);
      case Pattern::Kind::any_of:
        return build_choice(pattern, rest, at_begin);
      case Pattern::Kind::repeat:
        return build_repeat(pattern, rest, at_begin);
      case Pattern::Kind::begin:
        return at_begin ? rest : alike(Arena::kNothing);
      case Pattern::Kind::end:
        return {end(rest.after_word), end(rest.after_other)};
      case Pattern::Kind::boundary:
        return {arena_.all_of({no_word(), rest.after_word}), arena_.all_of({word(), rest.after_other})};
      case Pattern::Kind::no_boundary:
        return {arena_.all_of({word(), rest.after_word}), arena_.all_of({no_word(), rest.after_other})};
      case Pattern::Kind::ahead: {
        const Rest inner = build(pattern.parts[0], alike(any_), at_begin);
        return both(inner, rest);
      }
      case Pattern::Kind::not_ahead: {
        const Rest inner = build(pattern.parts[0], alike(any_), at_begin);
        return both({arena_.complement(inner.after_word), arena_.complement(inner.after_other)}, rest);
      }
    }
    return alike(Arena::kNothing);
  }

  // A text of the expression followed by the rest, which depends on the text's last character.
  Rest behind(Id text, Rest rest) {
    if (rest.same()) return alike(arena_.concat(text, rest.after_other));
    const CharSet& in_words = word_characters();
    const Id ends_in_word = arena_.all_of({text, arena_.concat(any_, chars(in_words))});
    const Id ends_in_other = arena_.all_of({text, arena_.concat(any_, chars(in_words.complement()))});
    const Id read = arena_.any_of(
        {arena_.concat(ends_in_word, rest.after_word), arena_.concat(ends_in_other, rest.after_other)});
    return arena_.nullable(text) ? either(alike(read), rest) : alike(read);
  }

  static bool has_assertion(const Pattern& pattern) {
    return pattern.kind >= Pattern::Kind::begin || std::ranges::any_of(pattern.parts, has_assertion);
  }
  static bool has_begin(const Pattern& pattern) {
    return pattern.kind == Pattern::Kind::begin || std::ranges::any_of(pattern.parts, has_begin);
  }

 private:
  // Whether the pattern never consumes anything.
  static bool zero_width(const Pattern& pattern) {
    return pattern.kind == Pattern::Kind::empty || pattern.kind >= Pattern::Kind::begin ||
           ((pattern.kind == Pattern::Kind::concat || pattern.kind == Pattern::Kind::any_of) &&
            std::ranges::all_of(pattern.parts, zero_width));
  }
  static bool may_be_empty(const Pattern& pattern) {
    switch (pattern.kind) {
      case Pattern::Kind::chars:
        return false;
      case Pattern::Kind::concat:
        return std::ranges::all_of(pattern.parts, may_be_empty);
      case Pattern::Kind::any_of:
        return std::ranges::any_of(pattern.parts, may_be_empty);
      case Pattern::Kind::repeat:
        return pattern.min == 0 || may_be_empty(pattern.parts[0]);
      default:
        return true;
    }
  }

  Rest both(Rest a, Rest b) {
    return {arena_.all_of({a.after_word, b.after_word}), arena_.all_of({a.after_other, b.after_other})};
  }
  Rest either(Rest a, Rest b) {
    return {arena_.any_of({a.after_word, b.after_word}), arena_.any_of({a.after_other, b.after_other})};
  }
  Id end(Id rest) const { return may_end_ && arena_.nullable(rest) ? Arena::kEmpty : Arena::kNothing; }
  // What begins with a word character, and what does not.
  Id word() { return arena_.concat(chars(word_characters()), any_); }
  Id no_word() { return arena_.complement(word()); }

  Rest build_choice(const Pattern& pattern, Rest rest, bool at_begin) {
    if (!has_assertion(pattern)) {
      std::vector<Id> choices;
      for (const Pattern& part : pattern.parts)
        choices.push_back(build(part, alike(Arena::kEmpty), at_begin).after_other);
      return behind(arena_.any_of(std::move(choices)), rest);
    }
    std::vector<Id> after_word, after_other;
    for (const Pattern& part : pattern.parts) {
      const Rest choice = build(part, rest, at_begin);
      after_word.push_back(choice.after_word);
      after_other.push_back(choice.after_other);
    }
    return {arena_.any_of(std::move(after_word)), arena_.any_of(std::move(after_other))};
  }

  Rest build_sequence(const Pattern& pattern, Rest rest, bool at_begin) {
    std::vector<bool> begins;
    bool perhaps = false;
    for (const Pattern& part : pattern.parts) {
      if (perhaps && has_begin(part))
        fail(ErrorKind::unsupported, "'^' after something that may be empty is not supported");
      begins.push_back(at_begin);
      if (at_begin && !zero_width(part)) {
        perhaps = may_be_empty(part);
        at_begin = false;
      } else if (perhaps && !may_be_empty(part)) {
        perhaps = false;
      }
    }
    for (std::size_t i = pattern.parts.size(); i-- > 0;) rest = build(pattern.parts[i], rest, begins[i]);
    return rest;
  }

  Rest build_repeat(const Pattern& pattern, Rest rest, bool at_begin) {
    const Pattern& inner = pattern.parts[0];
    if (!has_assertion(inner)) {
      const Id once = build(inner, alike(Arena::kEmpty), at_begin).after_other;
      return behind(arena_.repeat(once, pattern.min, pattern.max), rest);
    }
    if (pattern.max != 1 && !(zero_width(inner) && pattern.min <= 1)) {
      if (const auto ends = build_repeated_end(pattern, rest)) return *ends;
      if (const auto without = build_repeated_not_ahead(pattern, rest)) return *without;
      fail(ErrorKind::unsupported, "a repeated assertion is not supported");
    }
    const Rest once = build(inner, rest, at_begin);
    return pattern.min == 0 ? either(once, rest) : once;
  }

  // Not within another repetition: each level would build its content twice.
  static bool only_ends(const Pattern& pattern) {
    if (pattern.kind >= Pattern::Kind::begin) return pattern.kind == Pattern::Kind::end;
    if (pattern.kind == Pattern::Kind::repeat && pattern.max != 1) return !has_assertion(pattern);
    return std::ranges::all_of(pattern.parts, only_ends);
  }

  // (a,|b$)*: if $ holds in any repetition, it is the last.
  std::optional<Rest> build_repeated_end(const Pattern& pattern, Rest rest) {
    const Pattern& inner = pattern.parts[0];
    if (!only_ends(inner) || pattern.max == 0 || (pattern.min > 1 && may_be_empty(inner)))
      return std::nullopt;
    const bool before = std::exchange(may_end_, false);
    const Id turn = build(inner, alike(Arena::kEmpty), false).after_other;
    may_end_ = before;
    const std::uint32_t least = pattern.min > 0 ? pattern.min - 1 : 0;
    const std::uint32_t most = pattern.max == kNoLimit ? kNoLimit : pattern.max - 1;
    return either(behind(arena_.repeat(turn, least, most), build(inner, rest, false)),
                  behind(arena_.repeat(turn, pattern.min, pattern.max), rest));
  }

  // ((?!word).)* up to the end of the text: the word occurs nowhere in it.
  std::optional<Rest> build_repeated_not_ahead(const Pattern& pattern, Rest rest) {
    const Pattern& inner = pattern.parts[0];
    if (inner.kind != Pattern::Kind::concat || !rest.same() || rest.after_other != Arena::kEmpty ||
        inner.parts.empty() || inner.parts.back().kind != Pattern::Kind::chars)
      return std::nullopt;
    std::vector<Id> words;
    for (const Pattern& part : std::span(inner.parts).first(inner.parts.size() - 1)) {
      if (part.kind != Pattern::Kind::not_ahead || has_begin(part)) return std::nullopt;
      const Rest word = build(part.parts[0], alike(any_), false);
      if (!word.same()) return std::nullopt;
      words.push_back(word.after_other);
    }
    const Id some = arena_.concat(chars(CharSet::all()), any_);
    const Id found = arena_.concat(any_, arena_.all_of({arena_.any_of(std::move(words)), some}));
    return alike(arena_.all_of({arena_.repeat(chars(inner.parts.back().chars), pattern.min, pattern.max),
                                arena_.complement(found)}));
  }

  Arena& arena_;
  TextForm form_;
  bool may_end_ = true;  // whether $ can hold
  Id any_;
};

}  // namespace

const CharSet& word_characters() {
  static const CharSet kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return kWord;
}

Id match_regex(Arena& arena, const Pattern& pattern, TextForm form) {
  PatternBuilder builder(arena, form);
  const Id regex = builder.build(pattern, alike(Arena::kEmpty), true).after_other;
  return PatternBuilder::has_assertion(pattern) ? arena.all_of({regex, builder.any()}) : regex;
}

Id search_regex(Arena& arena, const Pattern& pattern, TextForm form) {
  PatternBuilder builder(arena, form);
  const auto build = [&](bool at_begin) { return builder.build(pattern, alike(builder.any()), at_begin); };
  Id regex = Arena::kEmpty;
  if (PatternBuilder::has_begin(pattern)) {
    const Id skipped = arena.repeat(builder.chars(CharSet::all()), 1);
    regex = arena.any_of({build(true).after_other, builder.behind(skipped, build(false)).after_other});
  } else {
    regex = builder.behind(builder.any(), build(false)).after_other;
  }
  return arena.may_be_void(regex) ? arena.all_of({regex, builder.any()}) : regex;
}

}  // namespace sluice::grammar::regex
