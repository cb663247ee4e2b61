#include "grammar/answer/free_text.h"

#include "grammar/regex/char_set.h"

namespace sluice::grammar::answer {

FreeText::FreeText(regex::Arena& arena, const GrammarVocabulary::State& vocabulary)
    : arena_(arena),
      vocabulary_(vocabulary),
      any_(arena.repeat(regex::utf8_regex(arena, regex::CharSet::all()), 0)) {}

regex::Id FreeText::marker(std::string_view text) const {
  return arena_.literal(vocabulary_.is_named(text) ? automaton::token_spelling(text) : std::string(text));
}

regex::Id FreeText::recognised(std::string_view text) const {
  return arena_.any_of({marker(text), arena_.literal(text)});
}

regex::Id FreeText::without(std::span<const std::string_view> markers) const {
  std::vector<regex::Id> conditions = {any_};
  for (const std::string_view marker : markers)
    conditions.push_back(arena_.complement(arena_.sequence({any_, arena_.literal(marker), any_})));
  return arena_.all_of(std::move(conditions));
}

regex::Id FreeText::until(std::string_view end, std::span<const std::string_view> markers) const {
  return arena_.concat(without(markers), recognised(end));
}

regex::Id FreeText::gap(std::uint32_t most) const {
  return arena_.repeat(arena_.bytes(regex::ByteSet::range(' ', ' ') | regex::ByteSet::range('\n', '\n')), 0,
                       most);
}

}  // namespace sluice::grammar::answer
