// A trie of byte strings and their tokens, flat and in depth-first order: a subtree is a range, so a mismatch
// skips it at once.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::grammar::automaton {

class TokenTrie {
 public:
  struct Node {
    std::uint32_t end;          // one past the last node of the subtree
    std::uint32_t first_token;  // into tokens()
    std::uint32_t token_count;
    unsigned char byte;
  };
  struct Entry {
    std::string_view bytes;
    std::int32_t token;
    std::uint32_t weight;  // a value that the trie's builder attaches to the token
  };

  TokenTrie() = default;
  explicit TokenTrie(std::vector<Entry> entries);

  // The first node is the root; its byte is unused.
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const std::int32_t> tokens(const Node& node) const {
    return {tokens_.data() + node.first_token, node.token_count};
  }
  std::span<const std::uint32_t> weights(const Node& node) const {
    return {weights_.data() + node.first_token, node.token_count};
  }
  // The tokens below a node, without its own; contiguous thanks to depth-first order.
  std::span<const std::int32_t> tokens_below(std::uint32_t node) const;
  std::size_t depth() const { return depth_; }

 private:
  std::vector<Node> nodes_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint32_t> weights_;
  std::size_t depth_ = 0;
};

}  // namespace sluice::grammar::automaton
