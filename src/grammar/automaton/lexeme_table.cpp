#include "grammar/automaton/lexeme_table.h"

#include <algorithm>
#include <utility>

#include "base/integer_cast.h"
#include "grammar/regex/flat_map.h"

namespace sluice::grammar::automaton {
namespace {

class Walk {
 public:
  Walk(regex::Lexer& lexer, const TokenTrie& trie, LexemeTable& table, StepClock& clock)
      : lexer_(lexer), trie_(trie), table_(table), clock_(clock) {}

  void operator()(std::uint32_t begin, std::uint32_t end, regex::LexState from, std::uint32_t depth) {
    for (std::uint32_t i = begin; i < end;) {
      const TokenTrie::Node& node = trie_.nodes()[i];
      clock_.poll();
      const regex::LexState to = lexer_.next(from, node.byte);
      if (to != regex::Lexer::kDead) {
        for (const std::int32_t token : trie_.tokens(node)) table_.inside.set(token);
        if (node.end > i + 1) {
          if (lexer_.accepting(to)) {
            table_.crossings.push_back(i);
            depths.push_back(depth + 1);
          }
          (*this)(i + 1, node.end, to, depth + 1);
        }
      }
      i = node.end;
    }
  }

  std::vector<std::uint32_t> depths;  // by crossing

 private:
  regex::Lexer& lexer_;
  const TokenTrie& trie_;
  LexemeTable& table_;
  StepClock& clock_;
};

}  // namespace

std::uint32_t covered_units(regex::LexState state, regex::LexState unit, std::uint32_t enough,
                            regex::Lexer& lexer) {
  constexpr std::size_t kMaxPairs = 4096;
  using Pair = std::pair<regex::LexState, regex::LexState>;
  // Pairs of a state after that many complete units, and a state within the next unit.
  std::vector<Pair> level = {{state, unit}}, next;
  regex::FlatMap seen;
  std::size_t count = 0;
  for (std::uint32_t units = 0; units < enough; ++units) {
    if (level.empty()) return regex::kNoLimit;
    for (std::size_t i = 0; i < level.size(); ++i) {
      const auto [at, in_unit] = level[i];
      unsigned last = ~0u;  // byte classes of the previous byte
      for (unsigned value = 0; value < 256; ++value) {
        const unsigned char byte = value;
        const unsigned classes = lexer.byte_class(at, byte) << 8 | lexer.byte_class(in_unit, byte);
        if (classes == std::exchange(last, classes)) continue;
        regex::LexState to_unit = lexer.next(in_unit, byte);
        if (to_unit == regex::Lexer::kDead) continue;
        const regex::LexState to = lexer.next(at, byte);
        if (to == regex::Lexer::kDead || lexer.accepting(to) || count > kMaxPairs) return units;
        const bool whole = lexer.accepting(to_unit);
        if (whole) to_unit = unit;
        const std::uint64_t key = std::uint64_t{to} << 32 | to_unit;
        if (seen.find(key) != regex::FlatMap::kAbsent) continue;
        seen.insert(key, 0);
        ++count;
        (whole ? next : level).emplace_back(to, to_unit);
      }
    }
    level = std::exchange(next, {});
  }
  return enough;
}

LexemeTable make_lexeme_table(regex::LexState state, regex::Lexer& lexer, const TokenTrie& trie,
                              std::span<const std::string_view> bytes, StepClock& clock) {
  constexpr std::size_t kMaxSuffixes = 20'000;
  LexemeTable table{.inside = BitMask(bytes.size()), .suffixes = {}, .crossings = {}};
  Walk walk(lexer, trie, table, clock);
  walk(1, trie.nodes()[0].end, state, 0);
  std::vector<TokenTrie::Entry> suffixes;
  for (std::size_t i = 0; i < table.crossings.size(); ++i) {
    for (const std::int32_t token : trie.tokens_below(table.crossings[i]))
      suffixes.push_back({bytes[to_size(token)].substr(walk.depths[i]), token, 0});
    if (suffixes.size() > kMaxSuffixes) return table;
  }
  table.crossings.clear();
  table.suffixes = TokenTrie(std::move(suffixes));
  return table;
}

}  // namespace sluice::grammar::automaton
