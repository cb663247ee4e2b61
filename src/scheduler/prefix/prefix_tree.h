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

namespace sluice::scheduler {

// Whoever owns pages and snapshots of the device.
class PageOwner {
 public:
  virtual ~PageOwner() = default;
  virtual std::int64_t rows() const = 0;  // of a page
  virtual void hold(std::int32_t page) = 0;
  virtual void drop(std::int32_t page) = 0;
  virtual bool shared(std::int32_t page) const = 0;  // with others than the tree
  // A copy of one block of a page in the host's memory; null: there are none.
  virtual SavedState save_block(std::int32_t page, std::int64_t block) = 0;
  // A copy of the states in a snapshot in the host's memory.
  virtual SavedState save_snapshot(std::int32_t place) = 0;
};

// Where a snapshot lies on the device, which is given back when nobody holds it.
using SnapshotPlace = std::shared_ptr<const std::int32_t>;

// Recurrent states that are kept in a snapshot of the device, in the host's memory, or in both.
struct KeptState {
  SnapshotPlace place = {};
  SavedState bytes = {};
  bool present() const { return place != nullptr || bytes != nullptr; }
};

struct PrefixTreeOptions {
  bool states = true;  // sequences have recurrent states
  // Clients that share nothing, by the first half of their salts: what one of them has remembered, wherever
  // it lies, takes at most its part of host_bytes and makes room for what it adds. So what others do never
  // decides about what is remembered. 1: all share everything.
  std::int64_t shares = 1;
  std::uint64_t block_bytes = 0;  // rows of a block and a state, as a share counts them
  std::uint64_t state_bytes = 0;
  // Of the host's memory, for states and for rows that had to leave their pages.
  std::uint64_t host_bytes = std::uint64_t{1} << 30;
  std::size_t nodes = std::size_t{1} << 18;  // to keep, those whose contents are gone included
};

// For one thread at a time.
class PrefixTree {
 public:
  PrefixTree(PageOwner& owner, const PrefixTreeOptions& options);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  struct Match {
    std::int64_t rows = 0;            // that need not be computed, a multiple of 64
    std::int64_t exact = 0;           // of them, computed as parts of prompts, as all those before them
    std::vector<std::int32_t> pages;  // where they lie
    KeptState state;
    std::int64_t common = 0;    // tokens that agree with a prompt before, of which `rows` may be fewer
    std::int32_t instead = -1;  // that prompt's next token; -1: it ends there
    bool evicted = false;       // because something of a longer prefix had to go; else it was never kept
  };
  // The longest cached prefix of a prompt, up to `most` rows.
  Match find(const Salt& salt, std::span<const std::int32_t> prompt, std::int64_t most);
  // What the host's memory and files would add to that: some of the rows are in pages, the rest would have to
  // be put there.
  struct StoredMatch {
    std::int64_t rows = 0;   // in pages, memory and files together; 0: no more than in pages alone
    std::int64_t exact = 0;  // as above
    std::int64_t paged = 0;  // of them in pages
    std::vector<std::int32_t> pages;
    std::vector<DiskStore::Piece> pieces;  // the other rows in their order, then the state unless it is here
    KeptState state;
    std::vector<FilePtr> files;  // along the way

    // Whether nothing has to be read from a disk.
    bool in_memory() const;
  };
  StoredMatch find_stored(const Salt& salt, std::span<const std::int32_t> prompt, std::int64_t least,
                          std::int64_t most);
  // A file that holds something of this prompt.
  void attach(const Salt& salt, std::span<const std::int32_t> ids, const FilePtr& file);
  // Rows of the prompt up to so many that are in files without a hole, and whether its state is.
  struct Stored {
    std::int64_t rows = 0;
    bool state = false;
    std::int64_t state_before = 0;  // rows at which the last state before that was kept
  };
  Stored stored(const Salt& salt, std::span<const std::int32_t> prompt, std::int64_t rows);
  struct Origin {
    // Rows up to here were computed as parts of a prompt, those behind them as an answer, or behind one.
    std::int64_t exact = std::numeric_limits<std::int64_t>::max();
    // Of requests that are going to begin alike: what the last of them left is worth more than its age says.
    std::string_view key = {};
  };
  // Remembers the first `rows` tokens of a prompt, a multiple of 64, which lie in these pages.
  void insert(const Salt& salt, std::span<const std::int32_t> prompt, std::int64_t rows,
              std::span<const std::int32_t> pages, KeptState state, const Origin& origin);
  void insert(const Salt& salt, std::span<const std::int32_t> prompt, std::int64_t rows,
              std::span<const std::int32_t> pages, KeptState state) {
    insert(salt, prompt, rows, pages, std::move(state), {});
  }
  // A prompt was read to its end: where others part from it can be told, though no rows are kept of less than
  // a block.
  void note(const Salt& salt, std::span<const std::int32_t> prompt);

  // Number of pages that nobody else uses.
  std::int64_t spare_pages() const;
  // Gives back the one that was used least lately; false: there is none. Its rows stay in the host's memory
  // as long as there is room.
  bool evict_page();
  // The same of the states in a snapshot.
  bool evict_snapshot();
  // Gives back this one, whoever else uses it; false: it was not the tree's.
  bool forget_page(std::int32_t page);
  void clear();

  // What is remembered under a salt, parents before children; at most so many. Nodes that follow one another
  // without a state or a fork between them are one.
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
  // The nodes of the whole blocks of the prompt that are there.
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
  std::vector<Node*> with_rows_;  // in the host's memory
  std::uint64_t host_bytes_ = 0;
  std::size_t nodes_ = 0;
  std::uint64_t now_ = 0;  // counts what was asked
};

}  // namespace sluice::scheduler
