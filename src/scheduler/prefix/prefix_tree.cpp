#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/integer_cast.h"
#include "scheduler/prefix/prefix_node.h"

namespace sluice::scheduler::prefix {

namespace {

constexpr auto kBlock = to_size(kChunkUnit);

std::size_t agreeing(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return to_size(end.first - a.begin());
}

}  // namespace

PrefixTree::PrefixTree(PageOwner& owner, const PrefixTreeOptions& options)
    : owner_(owner), options_(options), blocks_per_page_(owner.rows() / kChunkUnit) {
  if (blocks_per_page_ < 1 || owner.rows() % kChunkUnit != 0)
    fail(ErrorKind::internal, "pages of {} rows are not whole blocks of {}", owner.rows(), kChunkUnit);
}

PrefixTree::~PrefixTree() {
  clear();
}

void PrefixTree::clear() {
  for (const auto& [page, nodes] : page_nodes_) owner_.drop(page);
  page_nodes_.clear();
  with_state_.clear();
  with_rows_.clear();
  hinted_.clear();
  roots_.clear();
  shares_.clear();
  host_bytes_ = 0;
  nodes_ = 0;
}

PrefixTree::Node& PrefixTree::root(const Salt& salt) {
  std::unique_ptr<Node>& found = roots_[salt];
  if (found == nullptr) {
    std::unique_ptr<Share>& share = shares_[options_.shares > 1 ? salt[0] : 0];
    if (share == nullptr) share = std::make_unique<Share>();
    found = std::make_unique<Node>();
    found->share = share.get();
  }
  return *found;
}

PrefixTree::Use PrefixTree::tick(Share& share) {
  return {++share.now, ++now_};
}

PrefixTree::Node& PrefixTree::child(Node& parent, std::span<const std::int32_t> ids) {
  std::unique_ptr<Node>& found = parent.children[{ids.begin(), ids.end()}];
  if (found == nullptr) {
    found = std::make_unique<Node>();
    found->parent = &parent;
    found->share = parent.share;
    found->depth = parent.depth + 1;
    ++nodes_;
  }
  return *found;
}

std::vector<PrefixTree::Node*> PrefixTree::walk(Node& root, std::span<const std::int32_t> prompt) const {
  std::vector<Node*> path;
  Node* last = &root;
  for (std::size_t at = 0; at + kBlock <= prompt.size(); at += kBlock) {
    const auto ids = prompt.subspan(at, kBlock);
    const auto found = last->children.find({ids.begin(), ids.end()});
    if (found == last->children.end()) break;
    last = found->second.get();
    path.push_back(last);
  }
  return path;
}

// Among the blocks after a node, the neighbours in sorted order have the longest common prefix.
void PrefixTree::find_parting(const Node& last, std::span<const std::int32_t> rest, Match& match) const {
  const std::vector<std::int32_t> ids(rest.begin(), rest.begin() + std::min(rest.size(), kBlock));
  std::size_t most = agreeing(rest, last.tail);
  match.instead = most < last.tail.size() ? last.tail[most] : -1;
  const auto compare = [&](const std::vector<std::int32_t>& other) {
    const std::size_t agree = agreeing(rest, other);
    if (agree < most || (agree == most && match.instead >= 0)) return;
    most = agree;
    match.instead = agree < other.size() ? other[agree] : -1;
  };
  const auto behind = last.children.lower_bound(ids);
  if (behind != last.children.end()) compare(behind->first);
  if (behind != last.children.begin()) compare(std::prev(behind)->first);
  match.common += most;
}

// Whether the first `depth` blocks are in pages, which the last block in each page tells.
bool PrefixTree::has_rows(const std::vector<Node*>& path, std::size_t depth) const {
  const auto per_page = to_size(blocks_per_page_);
  for (std::size_t end = per_page; end < depth; end += per_page)
    if (path[end - 1]->page < 0) return false;
  return depth == 0 || path[depth - 1]->page >= 0;
}

PrefixTree::Match PrefixTree::find(const Salt& salt, std::span<const std::int32_t> prompt,
                                   std::int64_t most) {
  Node& first = root(salt);
  const Use now = tick(*first.share);
  const std::vector<Node*> path = walk(first, prompt);
  Match match;
  match.common = std::ssize(path) * kChunkUnit;
  find_parting(path.empty() ? first : *path.back(), prompt.subspan(path.size() * kBlock), match);
  for (std::size_t depth = std::min(path.size(), to_size(most) / kBlock); depth > 0; --depth) {
    const Node& node = *path[depth - 1];
    const bool usable = has_rows(path, depth) && (!options_.states || node.state.present());
    if (!usable) {
      match.evicted |= node.lost_state || node.page < 0;
      continue;
    }
    match.rows = static_cast<std::int64_t>(depth) * kChunkUnit;
    match.exact = exact_rows(path, depth);
    match.state = node.state;
    for (std::size_t i = 0; i < depth; ++i) path[i]->used = now;
    path[depth - 1]->state_used.all = now.all;
    match.pages = pages_of(path, depth);
    break;
  }
  // Eviction depends on what was requested, not on what others left on the device: mark the longest prefix
  // that is kept anywhere as used.
  if (const std::size_t kept = kept_depth(path, to_size(match.rows), to_size(most)); kept > 0) {
    path[kept - 1]->state_used.own = now.own;
    ++path[kept - 1]->hits;
  }
  return match;
}

// Rows before the first block that was computed in an answer; the last block does not count if its states
// were.
std::int64_t PrefixTree::exact_rows(const std::vector<Node*>& path, std::size_t depth) const {
  std::size_t exact = 0;
  while (exact < depth && !path[exact]->rows_decoded) ++exact;
  if (exact == depth && path[depth - 1]->state_decoded) --exact;
  return static_cast<std::int64_t>(exact) * kChunkUnit;
}

// The page of each page's last block among the first `depth` blocks.
std::vector<std::int32_t> PrefixTree::pages_of(const std::vector<Node*>& path, std::size_t depth) const {
  std::vector<std::int32_t> pages;
  const auto per_page = to_size(blocks_per_page_);
  for (std::size_t end = per_page; end < depth; end += per_page) pages.push_back(path[end - 1]->page);
  if (depth > 0) pages.push_back(path[depth - 1]->page);
  return pages;
}

// The largest number of blocks, up to `depth`, that are in pages.
std::size_t PrefixTree::paged_depth(const std::vector<Node*>& path, std::size_t depth) const {
  const auto per_page = to_size(blocks_per_page_);
  std::size_t whole = 0;
  while (whole + per_page <= depth && path[whole + per_page - 1]->page >= 0) whole += per_page;
  std::size_t end = std::min(depth, whole + per_page - 1);
  while (end > whole && path[end - 1]->page < 0) --end;
  return end;
}

// Empty if some blocks are neither in memory nor in a file.
std::vector<DiskStore::Piece> PrefixTree::pieces_of(const std::vector<Node*>& path, std::size_t begin,
                                                    std::size_t end) const {
  std::vector<DiskStore::Piece> pieces;
  for (std::size_t i = begin; i < end; ++i) {
    if (path[i]->rows != nullptr) {
      pieces.push_back({.bytes = path[i]->rows});
      continue;
    }
    if (!path[i]->has_rows_file()) return {};
    const FilePtr& file = path[i]->rows_file;
    const std::int64_t block = path[i]->depth - 1 - file->begin / kChunkUnit;
    if (!pieces.empty() && pieces.back().file == file)
      ++pieces.back().count;
    else
      pieces.push_back({file, block, 1});
  }
  return pieces;
}

// The length of the longest prefix of at most `most` rows that is in pages, memory and files together, or
// else of `least` rows.
std::size_t PrefixTree::kept_depth(const std::vector<Node*>& path, std::size_t least,
                                   std::size_t most) const {
  std::size_t depth = std::min(path.size(), most / kBlock);
  for (; depth > least / kBlock; --depth) {
    const Node& node = *path[depth - 1];
    if (options_.states && !node.state.present() && !node.has_state_file()) continue;
    const std::size_t paged = paged_depth(path, depth);
    if (paged == depth || !pieces_of(path, paged, depth).empty()) break;
  }
  return depth;
}

PrefixTree::StoredMatch PrefixTree::find_stored(const Salt& salt, std::span<const std::int32_t> prompt,
                                                std::int64_t least, std::int64_t most) {
  const std::vector<Node*> path = walk(root(salt), prompt);
  StoredMatch match;
  const std::size_t depth = kept_depth(path, to_size(least), to_size(most));
  if (depth <= to_size(least) / kBlock) return match;
  Node& node = *path[depth - 1];
  const std::size_t paged = paged_depth(path, depth);
  match.rows = static_cast<std::int64_t>(depth) * kChunkUnit;
  match.exact = exact_rows(path, depth);
  match.paged = static_cast<std::int64_t>(paged) * kChunkUnit;
  match.pages = pages_of(path, paged);
  match.pieces = pieces_of(path, paged, depth);
  match.state = node.state;
  if (options_.states && !node.state.present()) match.pieces.push_back({node.state_file});
  const Use now{node.share->now, now_};
  for (std::size_t i = 0; i < depth; ++i) path[i]->used = now;
  node.state_used = now;
  for (std::size_t i = 0; i < depth; ++i)
    if (path[i]->has_rows_file() && (match.files.empty() || match.files.back() != path[i]->rows_file))
      match.files.push_back(path[i]->rows_file);
  if (node.has_state_file()) match.files.push_back(node.state_file);
  return match;
}

bool PrefixTree::StoredMatch::in_memory() const {
  return std::none_of(pieces.begin(), pieces.end(),
                      [](const DiskStore::Piece& piece) { return piece.bytes == nullptr; });
}

void PrefixTree::attach(const Salt& salt, std::span<const std::int32_t> ids, const FilePtr& file) {
  Node* last = &root(salt);
  for (std::size_t at = 0; at < ids.size(); at += kBlock) {
    last = &child(*last, ids.subspan(at, kBlock));
    if (file->kind == FileKind::rows && static_cast<std::int64_t>(at) >= file->begin) last->rows_file = file;
    // Rows were used whenever later ones were.
    if (last->has_rows_file()) last->rows_file->used = std::max(last->rows_file->used, file->used);
  }
  if (file->kind == FileKind::state) last->state_file = file;
}

PrefixTree::Stored PrefixTree::stored(const Salt& salt, std::span<const std::int32_t> prompt,
                                      std::int64_t rows) {
  const std::vector<Node*> path = walk(root(salt), prompt.first(to_size(rows)));
  Stored stored;
  bool whole = true;
  for (const Node* node : path) {
    whole = whole && node->has_rows_file();
    if (whole) stored.rows = node->depth * kChunkUnit;
    const bool last = node->depth * kChunkUnit == rows;
    if (last) stored.state = node->has_state_file();
    if (!last && (node->state.present() || node->has_state_file()))
      stored.state_before = node->depth * kChunkUnit;
  }
  return stored;
}

void PrefixTree::set_page(Node& node, std::int32_t page) {
  if (node.page == page) return;
  if (page >= 0) {
    std::vector<Node*>& nodes = page_nodes_[page];
    if (nodes.empty()) owner_.hold(page);
    nodes.push_back(&node);
  }
  const std::int32_t before = std::exchange(node.page, page);
  charge(node);
  if (before < 0) return;
  std::vector<Node*>& others = page_nodes_.at(before);
  std::erase(others, &node);
  if (!others.empty()) return;
  page_nodes_.erase(before);
  owner_.drop(before);
}

void PrefixTree::insert(const Salt& salt, std::span<const std::int32_t> prompt, std::int64_t rows,
                        std::span<const std::int32_t> pages, KeptState state, const Origin& origin) {
  if (nodes_ > options_.nodes)
    for (auto& [name, root] : roots_) prune(root->children);
  std::vector<Node*> path;
  Node* last = &root(salt);
  Share& share = *last->share;
  const Use now = tick(share);
  for (std::size_t at = 0; at < to_size(rows); at += kBlock) {
    last = &child(*last, prompt.subspan(at, kBlock));
    last->used = now;
    path.push_back(last);
  }
  const auto decoded = [&](const Node& node) { return node.depth * kChunkUnit > origin.exact; };
  const auto per_page = to_size(blocks_per_page_);
  for (std::size_t begin = 0; begin < path.size(); begin += per_page) {
    const std::size_t end = std::min(begin + per_page, path.size());
    const Node& whole = *path[end - 1];
    if (whole.page >= 0 && (!whole.rows_decoded || decoded(whole))) continue;  // the page has the same rows
    for (std::size_t i = begin; i < end; ++i) {
      set_page(*path[i], pages[begin / per_page]);
      path[i]->rows_decoded = decoded(*path[i]);
    }
  }
  if (!path.empty() && options_.states) {
    last->state_used = now;
    if (!last->state.present()) ++state_before(*last).continued;
    if (!last->state.present() || last->state_decoded || !decoded(*last)) {
      last->state_decoded = decoded(*last);
      set_state(*last, std::move(state));
    }
  }
  if (!path.empty() && !origin.key.empty()) hint(*last, salt, origin.key);
  fit_share(share);
}

void PrefixTree::note(const Salt& salt, std::span<const std::int32_t> prompt) {
  Node& first = root(salt);
  const std::vector<Node*> path = walk(first, prompt);
  const auto rest = prompt.subspan(path.size() * kBlock);
  if (rest.size() < kBlock) (path.empty() ? first : *path.back()).tail.assign(rest.begin(), rest.end());
}

void PrefixTree::set_state(Node& node, KeptState state) {
  const bool was = node.state.present();
  if (node.state.bytes != nullptr) host_bytes_ -= node.state.bytes->size();
  if (was && !state.present()) std::erase(with_state_, &node);
  if (!was && state.present()) with_state_.push_back(&node);
  node.lost_state = was && !state.present();
  node.state = std::move(state);
  charge(node);
  if (node.state.bytes == nullptr) return;
  host_bytes_ += node.state.bytes->size();
  fit_host();
}

void PrefixTree::set_rows(Node& node, SavedState rows) {
  if (node.rows != nullptr) {
    host_bytes_ -= node.rows->size();
    std::erase(with_rows_, &node);
  }
  node.rows = std::move(rows);
  charge(node);
  if (node.rows == nullptr) return;
  host_bytes_ += node.rows->size();
  with_rows_.push_back(&node);
  fit_host();
}

// Drops a state without the rows before it.
void PrefixTree::drop_useless_state(Node& node) {
  if (node.state.present() && !node.has_rows()) set_state(node, {});
}

// The nearest ancestor that has a state, or the root.
PrefixTree::Node& PrefixTree::state_before(const Node& node) {
  Node* before = node.parent;
  while (before->parent != nullptr && !before->state.present()) before = before->parent;
  return *before;
}

// Blocks that would have to be recomputed per time since the last use (all states have the same size). A
// state that a single prompt continued from is likely useful only if that prompt is edited.
double PrefixTree::worth(const Node& node) {
  constexpr double kEdited = 0.1;
  const double blocks = node.depth - state_before(node).depth;
  const bool likely = node.continued != 1 || node.hints > 0;
  return blocks * (likely ? 1 : kEdited) / node.age(node.share->now, node.state_used.own);
}

// Evicts what is worth least per byte. Rows are useful only with all rows before them, which were used
// whenever later ones were: of equals the last ones go first.
void PrefixTree::fit_host() {
  // The limits of the shares add up to this one.
  if (options_.shares > 1 && std::ssize(shares_) <= options_.shares) return;
  while (host_bytes_ > options_.host_bytes) {
    Node* state = nullptr;
    double least = 0;
    for (Node* node : with_state_) {
      if (node->state.bytes == nullptr) continue;
      const double own = node->state.place != nullptr ? 0 : worth(*node);  // it is on the device, too
      if (state == nullptr || own < least) std::tie(state, least) = std::pair(node, own);
    }
    const auto before = [](const Node* a, const Node* b) {
      return std::tuple(a->page < 0, a->used.all, -a->depth) <
             std::tuple(b->page < 0, b->used.all, -b->depth);
    };
    const auto oldest = std::min_element(with_rows_.begin(), with_rows_.end(), before);
    Node* rows = oldest == with_rows_.end() ? nullptr : *oldest;
    if (state == nullptr && rows == nullptr) return;
    const auto lesser = [&] {
      const double per_byte = least / to_double(state->state.bytes->size());
      const double blocks = rows->page < 0 ? 1 : 0;
      const double age = rows->age(rows->share->now, rows->used.own);
      return per_byte < blocks / age / to_double(rows->rows->size());
    };
    if (rows == nullptr || (state != nullptr && lesser())) {
      set_state(*state, {.place = state->state.place});
    } else {
      set_rows(*rows, nullptr);
      drop_useless_state(*rows);
    }
  }
}

bool PrefixTree::evict_snapshot() {
  Node* oldest = nullptr;
  double longest = 0;
  for (Node* node : with_state_) {
    const double age = node->state.place == nullptr ? 0 : node->age(now_, node->state_used.all);
    if (age > longest) std::tie(oldest, longest) = std::pair(node, age);
  }
  if (oldest == nullptr) return false;
  SavedState bytes = oldest->state.bytes;
  if (bytes == nullptr) bytes = owner_.save_snapshot(*oldest->state.place);
  set_state(*oldest, {.bytes = std::move(bytes)});
  return true;
}

// Rows are useful only with all rows before them, so later pages are evicted first.
bool PrefixTree::is_leaf(std::int32_t page) const {
  for (const Node* node : page_nodes_.at(page))
    for (const auto& [ids, next] : node->children)
      if (next->page >= 0 && next->page != page) return false;
  return true;
}

std::int64_t PrefixTree::spare_pages() const {
  return std::count_if(page_nodes_.begin(), page_nodes_.end(),
                       [this](const auto& held) { return !owner_.shared(held.first); });
}

// If every page has successors, evicts one whose successors are in use: their users have these rows in
// another page.
bool PrefixTree::evict_page() {
  for (const bool leaves : {true, false}) {
    std::int32_t oldest = -1;
    double longest = 0;
    for (const auto& [page, nodes] : page_nodes_) {
      double age = std::numeric_limits<double>::max();
      for (const Node* node : nodes) age = std::min(age, node->age(now_, node->used.all));
      if (age <= longest || owner_.shared(page) || (leaves && !is_leaf(page))) continue;
      oldest = page;
      longest = age;
    }
    if (oldest >= 0) return forget_page(oldest);
  }
  return false;
}

bool PrefixTree::forget_page(std::int32_t page) {
  const auto found = page_nodes_.find(page);
  if (found == page_nodes_.end()) return false;
  const std::vector<Node*> nodes = found->second;
  for (Node* node : nodes)
    if (node->rows == nullptr && options_.host_bytes > 0)
      set_rows(*node, owner_.save_block(page, (node->depth - 1) % blocks_per_page_));
  for (Node* node : nodes) {
    set_page(*node, -1);
    drop_useless_state(*node);
  }
  return true;
}

// Removes branches' ends that hold nothing any more.
void PrefixTree::prune(Children& children) {
  for (auto one = children.begin(); one != children.end();) {
    prune(one->second->children);
    if (one->second->children.empty() && one->second->is_empty()) {
      if (one->second->hints > 0) drop_hints(*one->second);
      one = children.erase(one);
      --nodes_;
    } else {
      ++one;
    }
  }
}

}  // namespace sluice::scheduler::prefix
