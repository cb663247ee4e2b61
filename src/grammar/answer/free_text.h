// Unconstrained text up to a marker or to the end. A marker that is a token of its own is written as that
// token, and recognised in any spelling.
#pragma once

#include <span>
#include <string_view>

#include "grammar/automaton/vocabulary.h"
#include "grammar/regex/arena.h"

namespace sluice::grammar::answer {

class FreeText {
 public:
  FreeText(regex::Arena& arena, const GrammarVocabulary::State& vocabulary);

  regex::Id any() const { return any_; }
  // The marker as the model must write it.
  regex::Id marker(std::string_view text) const;
  // The marker in any way the model may have written it.
  regex::Id recognised(std::string_view text) const;
  // Text without any of the markers.
  regex::Id without(std::span<const std::string_view> markers) const;
  // The same, then the marker `end`, which is one of them.
  regex::Id until(std::string_view end, std::span<const std::string_view> markers) const;
  // At most that many blanks and line breaks.
  regex::Id gap(std::uint32_t most) const;

 private:
  regex::Arena& arena_;
  const GrammarVocabulary::State& vocabulary_;
  regex::Id any_;
};

}  // namespace sluice::grammar::answer
