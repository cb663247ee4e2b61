// The claims of clients in the prefix cache: their shares of the room, and the prefixes that their keys are
// expected to request again.
#include <algorithm>
#include <tuple>

#include "base/integer_cast.h"
#include "scheduler/prefix/prefix_node.h"

namespace sluice::scheduler::prefix {

namespace {

template <class Node>
void count_hints(Node* at, int count) {
  for (; at->parent != nullptr; at = at->parent) at->hints += count;
}

}  // namespace

// Records that the key's last prompt ended here, and no longer where the previous one did.
void PrefixTree::hint(Node& node, const Salt& salt, std::string_view key) {
  constexpr std::ptrdiff_t kMostKeys = 4096;
  const auto others = [&](const auto& one) { return one.second->share != node.share; };
  if (std::ssize(hinted_) - std::count_if(hinted_.begin(), hinted_.end(), others) > kMostKeys) {
    const auto oldest = std::min_element(hinted_.begin(), hinted_.end(), [&](const auto& a, const auto& b) {
      return std::pair(others(a), a.second->used.own) < std::pair(others(b), b.second->used.own);
    });
    count_hints(oldest->second, -1);
    hinted_.erase(oldest);
  }
  const Salt own = salt_of(key);
  Node*& last = hinted_[{own[0] ^ salt[0], own[1] ^ salt[1]}];
  if (last != nullptr) count_hints(last, -1);
  last = &node;
  count_hints(last, 1);
}

void PrefixTree::drop_hints(Node& node) {
  std::erase_if(hinted_, [&](const auto& key) {
    if (key.second != &node) return false;
    count_hints(&node, -1);
    return true;
  });
}

void PrefixTree::charge(Node& node) {
  const std::uint64_t bytes =
      (node.in_memory() ? options_.block_bytes : 0) + (node.state.present() ? options_.state_bytes : 0);
  node.share->bytes += bytes - node.charged;
  node.charged = bytes;
}

// As fit_host(), but per client: what a client loses depends only on its own requests, by its own clock. Rows
// in pages count too, because they may be evicted from them whenever others need pages.
void PrefixTree::fit_share(Share& share) {
  if (options_.shares <= 1) return;
  const std::uint64_t most = options_.host_bytes / options_.shares;
  while (share.bytes > most) {
    Node* state = nullptr;
    Node* rows = nullptr;
    double least = 0;
    for (Node* node : with_state_)
      if (node->share == &share && (state == nullptr || worth(*node) < least))
        std::tie(state, least) = std::pair(node, worth(*node));
    const auto look = [&](Node* node) {
      if (node->share != &share) return;
      const auto order = [](const Node* one) { return std::tuple(one->used.own, -one->depth); };
      if (rows == nullptr || order(node) < order(rows)) rows = node;
    };
    for (const auto& [page, nodes] : page_nodes_) std::for_each(nodes.begin(), nodes.end(), look);
    std::for_each(with_rows_.begin(), with_rows_.end(), look);
    const double of_rows = rows == nullptr ? 0 : 1 / rows->age(share.now, rows->used.own);
    if (state != nullptr && (rows == nullptr || least / to_double(options_.state_bytes) <
                                                    of_rows / to_double(options_.block_bytes))) {
      set_state(*state, {});
    } else if (rows != nullptr) {
      set_rows(*rows, nullptr);
      set_page(*rows, -1);
      drop_useless_state(*rows);
    } else {
      return;
    }
  }
}

}  // namespace sluice::scheduler::prefix
