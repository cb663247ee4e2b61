// Unconstrained text up to a marker or to the end. A marker that is a token of its own is written as that
// token, and recognised in any spelling.
#pragma once

#include <span>
#include <string_view>

#include "grammar/automaton/vocabulary.h"
#include "grammar/regex/arena.h"

namespace sluice::grammar {

class FreeText {
 public:
  FreeText(RegexArena& arena, const GrammarVocabulary::State& vocabulary);

  RegexId any() const { return any_; }
  // The marker as the model must write it.
  RegexId marker(std::string_view text) const;
  // The marker in any way the model may have written it.
  RegexId recognised(std::string_view text) const;
  // Text without any of the markers.
  RegexId without(std::span<const std::string_view> markers) const;
  // The same, then the marker `end`, which is one of them.
  RegexId until(std::string_view end, std::span<const std::string_view> markers) const;
  // At most that many blanks and line breaks.
  RegexId gap(std::uint32_t most) const;

 private:
  RegexArena& arena_;
  const GrammarVocabulary::State& vocabulary_;
  RegexId any_;
};

}  // namespace sluice::grammar
