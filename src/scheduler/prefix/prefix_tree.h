// The prefix cache: a tree over the token ids of processed prompts, in blocks of 64.
//
// A node is a prefix. Its rows are in pages of the caches, shared with the sequences that use them; in models
// with recurrent states, some nodes hold a copy of these. Both may be in files too. A prompt continues after
// the longest prefix that has both, and its remaining tokens have the bits of a cold run. What is cached
// depends on history and room; results never do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduler/prefix/disk_store.h"
#include "sluice/remembered_prompts.h"

namespace sluice::scheduler::prefix {

// The owner of pages and snapshots on the device.
class PageOwner {
 public:
  virtual ~PageOwner() = default;
  virtual std::int64_t rows() const = 0;  // per page
  virtual void hold(std::int32_t page) = 0;
  virtual void drop(std::int32_t page) = 0;
  virtual bool shared(std::int32_t page) const = 0;  // used by others than the tree
  // A copy of one block of a page in host memory; null: not available.
  virtual SavedState save_block(std::int32_t page, std::int64_t block) = 0;
  // A copy of a snapshot's states in host memory.
  virtual SavedState save_snapshot(std::int32_t place) = 0;
};

// The place of a snapshot on the device, freed once no one holds it.
using SnapshotPlace = std::shared_ptr<const std::int32_t>;

// Recurrent states in a snapshot on the device, in host memory, or both.
struct KeptState {
  SnapshotPlace place = {};
  SavedState bytes = {};
  bool present() const { return place != nullptr || bytes != nullptr; }
};

struct PrefixTreeOptions {
  bool states = true;  // sequences have recurrent states
  // Number of clients that share nothing, told apart by the first half of their salts: each has its part of
  // host_bytes, wherever its cached data lies, and evicts only its own data. So what is cached for one client
  // never depends on others. 1: everyone shares everything.
  std::int64_t shares = 1;
  std::uint64_t block_bytes = 0;  // bytes that a block's rows and a state count in a share
  std::uint64_t state_bytes = 0;
  // Limit of host memory for states and for rows evicted from pages.
  std::uint64_t host_bytes = std::uint64_t{1} << 30;
  std::size_t nodes = std::size_t{1} << 18;  // the most nodes, including those without contents
};

// To be used by one thread at a time.
class PrefixTree {
 public:
  PrefixTree(PageOwner& owner, const PrefixTreeOptions& options);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  struct Match {
    std::int64_t rows = 0;            // rows that need not be computed, a multiple of 64
    std::int64_t exact = 0;           // of them, up to where all were computed as parts of prompts
    std::vector<std::int32_t> pages;  // where they are
    KeptState state;
    std::int64_t common = 0;    // tokens in common with an earlier prompt; may be more than `rows`
    std::int32_t instead = -1;  // that prompt's next token; -1: it ends there
    bool evicted = false;       // whether a longer prefix was evicted; otherwise it was never cached
  };
  // The longest cached prefix of a prompt, up to `most` rows.
  Match find(const Salt& salt, std::span<const std::int32_t> prompt, std::int64_t most);
  // What host memory and files add to that: some of the rows are in pages, the rest would have to be loaded
  // into pages.
  struct StoredMatch {
    std::int64_t rows = 0;   // in pages, memory and files together; 0: no more than in pages
    std::int64_t exact = 0;  // as above
    std::int64_t paged = 0;  // of them, in pages
    std::vector<std::int32_t> pages;
    std::vector<DiskStore::Piece> pieces;  // the other rows in order, then the state unless `state` has it
    KeptState state;
    std::vector<FilePtr> files;  // the files on the path

    // Whether nothing has to be read from disk.
    bool in_memory() const;
  };
  StoredMatch find_stored(const Salt& salt, std::span<const std::int32_t> prompt, std::int64_t least,
                          std::int64_t most);
  // Attaches a file with rows or a state of this prompt.
  void attach(const Salt& salt, std::span<const std::int32_t> ids, const FilePtr& file);
  // The rows of the prompt, at most `rows`, that are in files without a gap, and whether the state after them
  // is.
  struct Stored {
    std::int64_t rows = 0;
    bool state = false;
    std::int64_t state_before = 0;  // rows of the nearest earlier state
  };
  Stored stored(const Salt& salt, std::span<const std::int32_t> prompt, std::int64_t rows);
  struct Origin {
    // Rows up to here were computed as parts of a prompt, later ones as, or after, an answer.
    std::int64_t exact = std::numeric_limits<std::int64_t>::max();
    // Identifies requests that are expected to begin alike: what the last of them left is more valuable than
    // its age suggests.
    std::string_view key = {};
  };
  // Caches the first `rows` tokens of a prompt, a multiple of 64, whose rows are in these pages.
  void insert(const Salt& salt, std::span<const std::int32_t> prompt, std::int64_t rows,
              std::span<const std::int32_t> pages, KeptState state, const Origin& origin);
  void insert(const Salt& salt, std::span<const std::int32_t> prompt, std::int64_t rows,
              std::span<const std::int32_t> pages, KeptState state) {
    insert(salt, prompt, rows, pages, std::move(state), {});
  }
  // Records a prompt that was read to its end, so that the point where others diverge from it can be reported
  // even within a block.
  void note(const Salt& salt, std::span<const std::int32_t> prompt);

  // Number of pages that no one else uses.
  std::int64_t spare_pages() const;
  // Evicts the least recently used page; false: there is none. Its rows stay in host memory as long as there
  // is room.
  bool evict_page();
  // The same for the states in a snapshot.
  bool evict_snapshot();
  // Releases this page even if others use it; false: it was not the tree's.
  bool forget_page(std::int32_t page);
  void clear();

  // The prefixes cached under a salt, parents before children, at most `most`. Consecutive nodes without a
  // state or a fork between them are merged.
  std::vector<RememberedPrefix> describe(const Salt& salt, std::size_t most) const;

  std::uint64_t host_bytes() const { return host_bytes_; }
  std::size_t nodes() const { return nodes_; }

 private:
  struct Node;
  struct Share;
  struct Use;
  using Children = std::map<std::vector<std::int32_t>, std::unique_ptr<Node>>;

  Node& root(const Salt& salt);
  Use tick(Share& share);
  Node& child(Node& parent, std::span<const std::int32_t> ids);
  // The existing nodes for the complete blocks of the prompt.
  std::vector<Node*> walk(Node& root, std::span<const std::int32_t> prompt) const;
  void find_parting(const Node& last, std::span<const std::int32_t> rest, Match& match) const;
  bool has_rows(const std::vector<Node*>& path, std::size_t depth) const;
  std::size_t paged_depth(const std::vector<Node*>& path, std::size_t depth) const;
  std::vector<std::int32_t> pages_of(const std::vector<Node*>& path, std::size_t depth) const;
  std::vector<DiskStore::Piece> pieces_of(const std::vector<Node*>& path, std::size_t begin,
                                          std::size_t end) const;
  std::size_t kept_depth(const std::vector<Node*>& path, std::size_t least, std::size_t most) const;
  std::int64_t exact_rows(const std::vector<Node*>& path, std::size_t depth) const;
  void set_page(Node& node, std::int32_t page);
  void charge(Node& node);
  void fit_share(Share& share);
  void hint(Node& node, const Salt& salt, std::string_view key);
  void drop_hints(Node& node);
  bool is_leaf(std::int32_t page) const;
  void set_state(Node& node, KeptState state);
  void set_rows(Node& node, SavedState rows);
  void drop_useless_state(Node& node);
  void fit_host();
  static Node& state_before(const Node& node);
  double worth(const Node& node);
  void prune(Children& children);

  PageOwner& owner_;
  PrefixTreeOptions options_;
  std::int64_t blocks_per_page_;
  std::map<std::uint64_t, std::unique_ptr<Share>> shares_;           // by the first half of a salt
  std::map<Salt, std::unique_ptr<Node>> roots_;                      // by salt
  std::map<Salt, Node*> hinted_;                                     // by salt and key
  std::unordered_map<std::int32_t, std::vector<Node*>> page_nodes_;  // by page
  std::vector<Node*> with_state_;
  std::vector<Node*> with_rows_;  // those with rows in host memory
  std::uint64_t host_bytes_ = 0;
  std::size_t nodes_ = 0;
  std::uint64_t now_ = 0;  // the clock: counts requests
};

}  // namespace sluice::scheduler::prefix
