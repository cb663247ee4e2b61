#include "scheduler/prefix/prefix_tree.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace sluice::scheduler {

namespace {

constexpr auto kBlock = static_cast<std::size_t>(kChunkUnit);

std::size_t agreeing(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end.first - a.begin());
}

}  // namespace

struct PrefixTree::Node {
  Node* parent = nullptr;
  std::int64_t depth = 0;  // blocks
  Children children;
  std::vector<std::int32_t> tail;  // the rest of the prompt that ended here last, less than a block
  std::int32_t page = -1;          // with the rows of its block and those before it in that page
  SavedState rows;                 // of its block, in the host's memory
  KeptState state;
  bool lost_state = false;
  FilePtr rows_file;  // with the rows of its block
  FilePtr state_file;
  std::uint64_t used = 0;
  std::uint64_t state_used = 0;
  int continued = 0;  // states that were kept behind this one, with none between

  static bool there(const FilePtr& file) { return file != nullptr && !file->gone; }
  bool has_rows_file() const { return there(rows_file); }
  bool has_state_file() const { return there(state_file); }
  bool has_rows() const { return page >= 0 || rows != nullptr || has_rows_file(); }
  bool is_empty() const { return !has_rows() && !state.present() && !has_state_file(); }
};

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
  roots_.clear();
  host_bytes_ = 0;
  nodes_ = 0;
}

PrefixTree::Node& PrefixTree::root(const Salt& salt) {
  std::unique_ptr<Node>& found = roots_[salt];
  if (found == nullptr) found = std::make_unique<Node>();
  return *found;
}

PrefixTree::Node& PrefixTree::child(Node& parent, std::span<const std::int32_t> ids) {
  std::unique_ptr<Node>& found = parent.children[{ids.begin(), ids.end()}];
  if (found == nullptr) {
    found = std::make_unique<Node>();
    found->parent = &parent;
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

// Of all blocks behind a node, the nearest in order agree longest.
void PrefixTree::find_parting(const Node& last, std::span<const std::int32_t> rest, Match& match) const {
  const std::vector<std::int32_t> ids(
      rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(rest.size(), kBlock)));
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
  match.common += static_cast<std::int64_t>(most);
}

// Whether the first `depth` blocks are in pages: the last of them in each page says so.
bool PrefixTree::has_rows(const std::vector<Node*>& path, std::size_t depth) const {
  const auto per_page = static_cast<std::size_t>(blocks_per_page_);
  for (std::size_t end = per_page; end < depth; end += per_page)
    if (path[end - 1]->page < 0) return false;
  return depth == 0 || path[depth - 1]->page >= 0;
}

PrefixTree::Match PrefixTree::find(const Salt& salt, std::span<const std::int32_t> prompt,
                                   std::int64_t most) {
  ++now_;
  Node& first = root(salt);
  const std::vector<Node*> path = walk(first, prompt);
  Match match;
  match.common = static_cast<std::int64_t>(path.size()) * kChunkUnit;
  find_parting(path.empty() ? first : *path.back(), prompt.subspan(path.size() * kBlock), match);
  for (std::size_t depth = std::min(path.size(), static_cast<std::size_t>(most) / kBlock); depth > 0;
       --depth) {
    const Node& node = *path[depth - 1];
    const bool usable = has_rows(path, depth) && (!options_.states || node.state.present());
    if (!usable) {
      match.evicted |= node.lost_state || node.page < 0;
      continue;
    }
    match.rows = static_cast<std::int64_t>(depth) * kChunkUnit;
    match.state = node.state;
    for (std::size_t i = 0; i < depth; ++i) path[i]->used = now_;
    path[depth - 1]->state_used = now_;
    match.pages = pages_of(path, depth);
    break;
  }
  return match;
}

// Of the last block in each page that the first `depth` blocks are in.
std::vector<std::int32_t> PrefixTree::pages_of(const std::vector<Node*>& path, std::size_t depth) const {
  std::vector<std::int32_t> pages;
  const auto per_page = static_cast<std::size_t>(blocks_per_page_);
  for (std::size_t end = per_page; end < depth; end += per_page) pages.push_back(path[end - 1]->page);
  if (depth > 0) pages.push_back(path[depth - 1]->page);
  return pages;
}

// The most blocks up to `depth` that are in pages.
std::size_t PrefixTree::paged_depth(const std::vector<Node*>& path, std::size_t depth) const {
  const auto per_page = static_cast<std::size_t>(blocks_per_page_);
  std::size_t whole = 0;
  while (whole + per_page <= depth && path[whole + per_page - 1]->page >= 0) whole += per_page;
  std::size_t end = std::min(depth, whole + per_page - 1);
  while (end > whole && path[end - 1]->page < 0) --end;
  return end;
}

// Empty where some are neither in memory nor in a file.
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

PrefixTree::StoredMatch PrefixTree::find_stored(const Salt& salt, std::span<const std::int32_t> prompt,
                                                std::int64_t least, std::int64_t most) {
  const std::vector<Node*> path = walk(root(salt), prompt);
  StoredMatch match;
  for (std::size_t depth = std::min(path.size(), static_cast<std::size_t>(most) / kBlock);
       depth > static_cast<std::size_t>(least) / kBlock; --depth) {
    const Node& node = *path[depth - 1];
    if (options_.states && !node.state.present() && !node.has_state_file()) continue;
    const std::size_t paged = paged_depth(path, depth);
    std::vector<DiskStore::Piece> pieces = pieces_of(path, paged, depth);
    if (pieces.empty() && paged < depth) continue;
    match.rows = static_cast<std::int64_t>(depth) * kChunkUnit;
    match.paged = static_cast<std::int64_t>(paged) * kChunkUnit;
    match.pages = pages_of(path, paged);
    match.pieces = std::move(pieces);
    match.state = node.state;
    if (options_.states && !node.state.present()) match.pieces.push_back({node.state_file});
    for (std::size_t i = 0; i < depth; ++i) path[i]->used = now_;
    path[depth - 1]->state_used = now_;
    for (std::size_t i = 0; i < depth; ++i)
      if (path[i]->has_rows_file() && (match.files.empty() || match.files.back() != path[i]->rows_file))
        match.files.push_back(path[i]->rows_file);
    if (node.has_state_file()) match.files.push_back(node.state_file);
    break;
  }
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
    // Rows were of use whenever those behind them were.
    if (last->has_rows_file()) last->rows_file->used = std::max(last->rows_file->used, file->used);
  }
  if (file->kind == FileKind::state) last->state_file = file;
}

PrefixTree::Stored PrefixTree::stored(const Salt& salt, std::span<const std::int32_t> prompt,
                                      std::int64_t rows) {
  const std::vector<Node*> path = walk(root(salt), prompt.first(static_cast<std::size_t>(rows)));
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
  if (before < 0) return;
  std::vector<Node*>& others = page_nodes_.at(before);
  std::erase(others, &node);
  if (!others.empty()) return;
  page_nodes_.erase(before);
  owner_.drop(before);
}

void PrefixTree::insert(const Salt& salt, std::span<const std::int32_t> prompt, std::int64_t rows,
                        std::span<const std::int32_t> pages, KeptState state) {
  ++now_;
  if (nodes_ > options_.nodes)
    for (auto& [name, root] : roots_) prune(root->children);
  std::vector<Node*> path;
  Node* last = &root(salt);
  for (std::size_t at = 0; at < static_cast<std::size_t>(rows); at += kBlock) {
    last = &child(*last, prompt.subspan(at, kBlock));
    last->used = now_;
    path.push_back(last);
  }
  const auto per_page = static_cast<std::size_t>(blocks_per_page_);
  for (std::size_t begin = 0; begin < path.size(); begin += per_page) {
    const std::size_t end = std::min(begin + per_page, path.size());
    if (path[end - 1]->page >= 0) continue;  // with the same rows
    for (std::size_t i = begin; i < end; ++i) set_page(*path[i], pages[begin / per_page]);
  }
  if (path.empty() || !options_.states) return;
  last->state_used = now_;
  if (!last->state.present()) ++state_before(*last).continued;
  set_state(*last, std::move(state));
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
  if (node.rows == nullptr) return;
  host_bytes_ += node.rows->size();
  with_rows_.push_back(&node);
  fit_host();
}

// A state without the rows before it.
void PrefixTree::drop_useless_state(Node& node) {
  if (node.state.present() && !node.has_rows()) set_state(node, {});
}

// The last node before this one that has a state, or the root.
PrefixTree::Node& PrefixTree::state_before(const Node& node) {
  Node* before = node.parent;
  while (before->parent != nullptr && !before->state.present()) before = before->parent;
  return *before;
}

// Blocks that would have to be computed again per time since it was used: states are of one size. One that a
// single prompt went on from is likely to be of use only if that is edited.
double PrefixTree::worth(const Node& node) {
  constexpr double kEdited = 0.1;
  const double blocks = static_cast<double>(node.depth - state_before(node).depth);
  return blocks * (node.continued == 1 ? kEdited : 1) / static_cast<double>(now_ - node.state_used + 1);
}

// Gives up what is worth least per byte. Rows are of use only with all rows before them, which were used
// whenever those behind them were: of equals the last ones go first.
void PrefixTree::fit_host() {
  while (host_bytes_ > options_.host_bytes) {
    Node* state = nullptr;
    double least = 0;
    for (Node* node : with_state_) {
      if (node->state.bytes == nullptr) continue;
      const double own = node->state.place != nullptr ? 0 : worth(*node);  // it is on the device, too
      if (state == nullptr || own < least) std::tie(state, least) = std::pair(node, own);
    }
    const auto before = [](const Node* a, const Node* b) {
      return std::tuple(a->page < 0, a->used, -a->depth) < std::tuple(b->page < 0, b->used, -b->depth);
    };
    const auto oldest = std::min_element(with_rows_.begin(), with_rows_.end(), before);
    Node* rows = oldest == with_rows_.end() ? nullptr : *oldest;
    if (state == nullptr && rows == nullptr) return;
    const auto lesser = [&] {
      const double per_byte = least / static_cast<double>(state->state.bytes->size());
      const double blocks = rows->page < 0 ? 1 : 0;
      const double age = static_cast<double>(now_ - rows->used + 1);
      return per_byte < blocks / age / static_cast<double>(rows->rows->size());
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
  for (Node* node : with_state_)
    if (node->state.place != nullptr && (oldest == nullptr || node->state_used < oldest->state_used))
      oldest = node;
  if (oldest == nullptr) return false;
  SavedState bytes = oldest->state.bytes;
  if (bytes == nullptr) bytes = owner_.save_snapshot(*oldest->state.place);
  set_state(*oldest, {.bytes = std::move(bytes)});
  return true;
}

// Rows are of use only with all rows before them: a page goes before those in front of it.
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

bool PrefixTree::evict_page() {
  std::int32_t oldest = -1;
  std::uint64_t oldest_use = 0;
  for (const auto& [page, nodes] : page_nodes_) {
    std::uint64_t use = 0;
    for (const Node* node : nodes) use = std::max(use, node->used);
    if ((oldest >= 0 && use >= oldest_use) || owner_.shared(page) || !is_leaf(page)) continue;
    oldest = page;
    oldest_use = use;
  }
  return oldest >= 0 && forget_page(oldest);
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

// Forgets the ends of branches of which nothing is left.
void PrefixTree::prune(Children& children) {
  for (auto one = children.begin(); one != children.end();) {
    prune(one->second->children);
    if (one->second->children.empty() && one->second->is_empty()) {
      one = children.erase(one);
      --nodes_;
    } else {
      ++one;
    }
  }
}

}  // namespace sluice::scheduler
