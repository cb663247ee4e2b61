#include "grammar/automaton/token_trie.h"

#include <algorithm>

#include "base/integer_cast.h"

namespace sluice::grammar::automaton {

TokenTrie::TokenTrie(std::vector<Entry> entries) {
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.token < b.token;
  });
  tokens_.reserve(entries.size());
  weights_.reserve(entries.size());
  std::vector<std::uint32_t> open = {0};  // the path from the root to the last node
  nodes_.push_back({0, 0, 0, 0});
  std::string_view last;
  const auto close = [&](std::size_t depth) {
    while (open.size() > depth + 1) {
      nodes_[open.back()].end = nodes_.size();
      open.pop_back();
    }
  };
  for (const Entry& entry : entries) {
    const auto [differs, unused] = std::ranges::mismatch(entry.bytes, last);
    std::size_t depth = to_size(differs - entry.bytes.begin());
    close(depth);
    for (; depth < entry.bytes.size(); ++depth) {
      open.push_back(nodes_.size());
      nodes_.push_back(
          {0, static_cast<std::uint32_t>(tokens_.size()), 0, static_cast<unsigned char>(entry.bytes[depth])});
    }
    ++nodes_[open.back()].token_count;
    tokens_.push_back(entry.token);
    weights_.push_back(entry.weight);
    depth_ = std::max(depth_, entry.bytes.size());
    last = entry.bytes;
  }
  close(0);
  nodes_[0].end = nodes_.size();
}

std::span<const std::int32_t> TokenTrie::tokens_below(std::uint32_t node) const {
  const Node& top = nodes_[node];
  const std::size_t begin = top.first_token + top.token_count;
  const std::size_t end = top.end < nodes_.size() ? nodes_[top.end].first_token : tokens_.size();
  return std::span(tokens_).subspan(begin, end - begin);
}

}  // namespace sluice::grammar::automaton
