// From the syntax tree to an expression. It is made from the right, because assertions speak of all that
// follows.
#include "grammar/regex/pattern.h"

#include <algorithm>

#include "base/error.h"
#include "grammar/json/string.h"

namespace sluice::grammar {
namespace {

class PatternBuilder {
 public:
  PatternBuilder(RegexArena& arena, TextForm form) : arena_(arena), form_(form) {
    any_ = arena.repeat(chars(CharSet::all()), 0);
  }

  RegexId any() const { return any_; }
  RegexId chars(const CharSet& set) {
    return form_ == TextForm::utf8 ? utf8_regex(arena_, set) : json_char_regex(arena_, set);
  }

  // The pattern and then `rest`, which reaches to the end of the text.
  RegexId build(const Pattern& pattern, RegexId rest, bool at_begin) {
    switch (pattern.kind) {
      case Pattern::Kind::empty:
        return rest;
      case Pattern::Kind::chars:
        return arena_.concat(chars(pattern.chars), rest);
      case Pattern::Kind::concat:
        return build_sequence(pattern, rest, at_begin);
      case Pattern::Kind::any_of: {
        std::vector<RegexId> choices;
        const bool alone = !has_assertion(pattern);
        for (const Pattern& part : pattern.parts)
          choices.push_back(build(part, alone ? RegexArena::kEmpty : rest, at_begin));
        const RegexId choice = arena_.any_of(std::move(choices));
        return alone ? arena_.concat(choice, rest) : choice;
      }
      case Pattern::Kind::repeat:
        return build_repeat(pattern, rest, at_begin);
      case Pattern::Kind::begin:
        return at_begin ? rest : RegexArena::kNothing;
      case Pattern::Kind::end:
        return arena_.nullable(rest) ? RegexArena::kEmpty : RegexArena::kNothing;
      case Pattern::Kind::ahead:
        return arena_.all_of({build(pattern.parts[0], any_, at_begin), rest});
      case Pattern::Kind::not_ahead:
        return arena_.all_of({arena_.complement(build(pattern.parts[0], any_, at_begin)), rest});
    }
    return RegexArena::kNothing;
  }

  static bool has_assertion(const Pattern& pattern) {
    return pattern.kind >= Pattern::Kind::begin || std::ranges::any_of(pattern.parts, has_assertion);
  }
  static bool has_begin(const Pattern& pattern) {
    return pattern.kind == Pattern::Kind::begin || std::ranges::any_of(pattern.parts, has_begin);
  }

 private:
  // Whether the pattern reads nothing whatever the text.
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

  RegexId build_sequence(const Pattern& pattern, RegexId rest, bool at_begin) {
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

  RegexId build_repeat(const Pattern& pattern, RegexId rest, bool at_begin) {
    const Pattern& inner = pattern.parts[0];
    if (!has_assertion(inner))
      return arena_.concat(
          arena_.repeat(build(inner, RegexArena::kEmpty, at_begin), pattern.min, pattern.max), rest);
    if (pattern.max != 1 && !(zero_width(inner) && pattern.min <= 1))
      fail(ErrorKind::unsupported, "a repeated assertion is not supported");
    const RegexId once = build(inner, rest, at_begin);
    return pattern.min == 0 ? arena_.any_of({once, rest}) : once;
  }

  RegexArena& arena_;
  TextForm form_;
  RegexId any_;
};

}  // namespace

RegexId match_regex(RegexArena& arena, const Pattern& pattern, TextForm form) {
  PatternBuilder builder(arena, form);
  const RegexId regex = builder.build(pattern, RegexArena::kEmpty, true);
  return PatternBuilder::has_assertion(pattern) ? arena.all_of({regex, builder.any()}) : regex;
}

RegexId search_regex(RegexArena& arena, const Pattern& pattern, TextForm form) {
  PatternBuilder builder(arena, form);
  RegexId regex;
  if (PatternBuilder::has_begin(pattern)) {
    const RegexId later = builder.build(pattern, builder.any(), false);
    const RegexId skipped = arena.repeat(builder.chars(CharSet::all()), 1);
    regex = arena.any_of({builder.build(pattern, builder.any(), true), arena.concat(skipped, later)});
  } else {
    regex = arena.concat(builder.any(), builder.build(pattern, builder.any(), false));
  }
  return arena.may_be_void(regex) ? arena.all_of({regex, builder.any()}) : regex;
}

}  // namespace sluice::grammar
