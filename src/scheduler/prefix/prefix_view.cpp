// A description of the prefix cache for users.
#include <algorithm>
#include <tuple>

#include "base/integer_cast.h"
#include "scheduler/prefix/prefix_node.h"

namespace sluice::scheduler::prefix {

namespace {

constexpr std::size_t kMostIds = 64;

}  // namespace

std::vector<RememberedPrefix> PrefixTree::describe(const Salt& salt, std::size_t most) const {
  const auto found = roots_.find(salt);
  if (found == roots_.end()) return {};
  std::vector<RememberedPrefix> all;
  struct Next {
    const Node* node;
    const std::vector<std::int32_t>* ids;
    std::int64_t parent;
  };
  std::vector<Next> open;  // the next one last
  const auto push = [&](const Node& node, std::int64_t parent) {
    for (auto child = node.children.rbegin(); child != node.children.rend(); ++child)
      open.push_back({child->second.get(), &child->first, parent});
  };
  push(*found->second, -1);
  while (!open.empty() && all.size() < most) {
    auto [node, ids, parent] = open.back();
    open.pop_back();
    RememberedPrefix one{.parent = parent, .begin = (node->depth - 1) * kChunkUnit};
    for (;;) {
      const auto count = std::min(ids->size(), kMostIds - one.ids.size());
      one.ids.insert(one.ids.end(), ids->begin(), ids->begin() + count);
      one.end = node->depth * kChunkUnit;
      one.on_device += node->page >= 0 ? kChunkUnit : 0;
      one.on_host += node->rows != nullptr ? kChunkUnit : 0;
      one.on_disk += node->has_rows_file() ? kChunkUnit : 0;
      one.hits += node->hits;
      const bool state = node->state.present() || node->has_state_file();
      if (state || node->children.size() != 1) break;
      std::tie(ids, node) = std::pair(&node->children.begin()->first, node->children.begin()->second.get());
    }
    one.state_on_device = node->state.place != nullptr;
    one.state_on_host = node->state.bytes != nullptr;
    one.state_on_disk = node->has_state_file();
    const auto blocks = (one.on_device + one.on_host + one.on_disk) / kChunkUnit;
    const int states = int{one.state_on_device} + int{one.state_on_host} + int{one.state_on_disk};
    one.bytes = static_cast<std::uint64_t>(blocks) * options_.block_bytes +
                static_cast<std::uint64_t>(states) * options_.state_bytes;
    push(*node, std::ssize(all));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace sluice::scheduler::prefix
