#include "grammar/automaton/lexeme_table.h"

#include <algorithm>
#include <utility>

namespace sluice::grammar {
namespace {

class Walk {
 public:
  Walk(Lexer& lexer, const TokenTrie& trie, LexemeTable& table, StepClock& clock)
      : lexer_(lexer), trie_(trie), table_(table), clock_(clock) {}

  void operator()(std::uint32_t begin, std::uint32_t end, LexState from, std::uint32_t depth) {
    for (std::uint32_t i = begin; i < end;) {
      const TokenTrie::Node& node = trie_.nodes()[i];
      clock_.poll();
      const LexState to = lexer_.next(from, node.byte);
      if (to != Lexer::kDead) {
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

  std::vector<std::uint32_t> depths;  // of the crossings

 private:
  Lexer& lexer_;
  const TokenTrie& trie_;
  LexemeTable& table_;
  StepClock& clock_;
};

}  // namespace

bool covers(LexState state, LexState unit, Lexer& lexer) {
  constexpr std::size_t kMaxPairs = 200;
  std::vector<std::pair<LexState, LexState>> pairs = {{state, unit}};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs.size() > kMaxPairs) return false;
    const auto [at, in_unit] = pairs[i];
    for (unsigned byte = 0; byte < 256; ++byte) {
      LexState next_unit = lexer.next(in_unit, static_cast<unsigned char>(byte));
      if (next_unit == Lexer::kDead) continue;
      const LexState next = lexer.next(at, static_cast<unsigned char>(byte));
      if (next == Lexer::kDead || lexer.accepting(next)) return false;
      if (lexer.accepting(next_unit)) next_unit = unit;
      const std::pair pair(next, next_unit);
      if (std::ranges::find(pairs, pair) == pairs.end()) pairs.push_back(pair);
    }
  }
  return true;
}

LexemeTable make_lexeme_table(LexState state, Lexer& lexer, const TokenTrie& trie,
                              std::span<const std::string_view> bytes, StepClock& clock) {
  constexpr std::size_t kMaxSuffixes = 20'000;
  LexemeTable table{.inside = BitMask(bytes.size()), .suffixes = {}, .crossings = {}};
  Walk walk(lexer, trie, table, clock);
  walk(1, trie.nodes()[0].end, state, 0);
  std::vector<TokenTrie::Entry> suffixes;
  for (std::size_t i = 0; i < table.crossings.size(); ++i) {
    for (const std::int32_t token : trie.tokens_below(table.crossings[i]))
      suffixes.push_back({bytes[static_cast<std::size_t>(token)].substr(walk.depths[i]), token, 0});
    if (suffixes.size() > kMaxSuffixes) return table;
  }
  table.crossings.clear();
  table.suffixes = TokenTrie(std::move(suffixes));
  return table;
}

}  // namespace sluice::grammar
