#include "grammar/automaton/run_table.h"

#include <algorithm>

#include "base/integer_cast.h"

namespace sluice::grammar::automaton {
namespace {

bool is_one_byte(regex::Id regex, regex::Lexer& lexer) {
  return lexer.arena().kind(regex) == regex::Arena::Kind::bytes &&
         lexer.live(lexer.state(regex)).count() == 1;
}

}  // namespace

std::optional<Run> as_run(regex::Id regex, regex::Lexer& lexer) {
  regex::Arena& arena = lexer.arena();
  using Kind = regex::Arena::Kind;
  if (arena.may_be_void(regex) || arena.kind(regex) != Kind::concat) return std::nullopt;
  Run run{.prefix = regex::Arena::kEmpty, .unit = 0, .end = 0, .min = 0, .max = 0};
  if (is_one_byte(arena.first(regex), lexer)) {
    run.prefix = arena.first(regex);
    regex = arena.second(regex);
    if (arena.kind(regex) != Kind::concat) return std::nullopt;
  }
  const regex::Id units = arena.first(regex);
  run.end = arena.second(regex);
  if (arena.kind(units) != Kind::repeat || arena.nullable(run.end)) return std::nullopt;
  run.unit = arena.first(units);
  run.min = arena.repeat_min(units);
  run.max = arena.repeat_max(units);
  if (arena.nullable(run.unit)) return std::nullopt;
  const regex::ByteSet both = lexer.live(lexer.state(run.unit)) & lexer.live(lexer.state(run.end));
  if (!both.empty() || !lexer.prefix_free(run.unit)) return std::nullopt;
  return run;
}

struct RunTable::Walk {
  regex::Lexer& lexer;
  const TokenTrie& trie;
  std::span<const std::string_view> bytes;
  regex::LexState unit_start, end_start;
  std::vector<Inside>& inside;
  StepClock& clock;
  std::vector<TokenTrie::Entry> suffixes = {};

  void units(std::uint32_t begin, std::uint32_t stop, regex::LexState at, std::uint32_t count,
             std::uint32_t depth) {
    for (std::uint32_t i = begin; i < stop;) {
      const TokenTrie::Node& node = trie.nodes()[i];
      clock.poll();
      const regex::LexState to = lexer.next(at, node.byte);
      if (to != regex::Lexer::kDead) {
        const std::uint32_t units_begun = count + (at == unit_start ? 1 : 0);
        for (const std::int32_t token : trie.tokens(node)) inside.push_back({units_begun, token});
        if (node.end > i + 1)
          units(i + 1, node.end, lexer.accepting(to) ? unit_start : to, units_begun, depth + 1);
      } else if (at == unit_start) {
        end(i, end_start, count, depth);
      }
      i = node.end;
    }
  }

  // The node's byte is read by the run's end.
  void end(std::uint32_t i, regex::LexState from, std::uint32_t count, std::uint32_t depth) {
    const TokenTrie::Node& node = trie.nodes()[i];
    const regex::LexState to = lexer.next(from, node.byte);
    if (to == regex::Lexer::kDead) return;
    for (const std::int32_t token : trie.tokens(node)) suffixes.push_back({{}, token, count});
    if (node.end == i + 1) return;
    if (lexer.accepting(to)) {
      for (const std::int32_t token : trie.tokens_below(i))
        suffixes.push_back({bytes[to_size(token)].substr(depth + 1), token, count});
    }
    for (std::uint32_t child = i + 1; child < node.end; child = trie.nodes()[child].end)
      end(child, to, count, depth + 1);
  }
};

RunTable::RunTable(const Run& run, regex::Lexer& lexer, const TokenTrie& trie,
                   std::span<const std::string_view> bytes, StepClock& clock) {
  Walk walk{lexer, trie, bytes, lexer.state(run.unit), lexer.state(run.end), inside_, clock};
  const std::uint32_t all = trie.nodes()[0].end;
  if (run.prefix == regex::Arena::kEmpty) {
    walk.units(1, all, walk.unit_start, 0, 0);
  } else {
    const unsigned char first = lexer.live(lexer.state(run.prefix)).first();
    for (std::uint32_t i = 1; i < all; i = trie.nodes()[i].end) {
      const TokenTrie::Node& node = trie.nodes()[i];
      if (node.byte != first) continue;
      for (const std::int32_t token : trie.tokens(node)) inside_.push_back({0, token});
      walk.units(i + 1, node.end, walk.unit_start, 0, 1);
    }
  }
  suffixes_ = TokenTrie(std::move(walk.suffixes));
  std::ranges::stable_sort(inside_, {}, &Inside::units);
  BitMask mask(bytes.size());
  std::size_t at = 0;
  for (const std::uint32_t units :
       {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 10u, 12u, 16u, 20u, 32u, regex::kNoLimit}) {
    const std::size_t before = at;
    for (; at < inside_.size() && inside_[at].units <= units; ++at) mask.set(inside_[at].token);
    if (at == before && !masks_.empty()) continue;
    up_to_.push_back(units);
    position_.push_back(at);
    masks_.push_back(mask);
  }
}

void RunTable::add_inside(std::uint32_t max, BitMask& mask) const {
  const auto above = to_size(std::ranges::upper_bound(up_to_, max) - up_to_.begin());
  const std::size_t kept = above - 1;  // up_to_ begins with 0
  // If all tokens have fewer units, the last mask holds them all.
  mask |= masks_[kept];
  for (std::size_t i = position_[kept]; i < inside_.size() && inside_[i].units <= max; ++i)
    mask.set(inside_[i].token);
}

}  // namespace sluice::grammar::automaton
