// A node of the prefix cache; internal to its sources.
#pragma once

#include "base/integer_cast.h"
#include "scheduler/prefix/prefix_tree.h"

namespace sluice::scheduler::prefix {

// The time of last use: by the share's clock, which decides about eviction, and by the common clock, which
// decides what stays on the device.
struct PrefixTree::Use {
  std::uint64_t own = 0;
  std::uint64_t all = 0;
};

struct PrefixTree::Share {
  std::uint64_t now = 0;    // the clock: counts requests
  std::uint64_t bytes = 0;  // of rows and states, wherever they are
};

struct PrefixTree::Node {
  Node* parent = nullptr;
  Share* share = nullptr;
  std::int64_t depth = 0;  // in blocks
  Children children;
  std::vector<std::int32_t> tail;  // the rest of the last prompt that ended here, less than a block
  std::int32_t page = -1;          // holds the rows of its block and of earlier blocks in that page
  SavedState rows;                 // of its block, in host memory
  KeptState state;
  bool lost_state = false;
  bool rows_decoded = false;  // computed as, or after, an answer
  bool state_decoded = false;
  FilePtr rows_file;  // with the rows of its block
  FilePtr state_file;
  Use used;
  Use state_used;
  int continued = 0;  // states saved after this one, with none in between
  int hints = 0;      // keys whose last prompt passes through here
  std::uint64_t hits = 0;
  std::uint64_t charged = 0;  // bytes counted in its share

  static bool there(const FilePtr& file) { return file != nullptr && !file->gone; }
  bool has_rows_file() const { return there(rows_file); }
  bool has_state_file() const { return there(state_file); }
  bool in_memory() const { return page >= 0 || rows != nullptr; }
  bool has_rows() const { return in_memory() || has_rows_file(); }
  bool is_empty() const { return !has_rows() && !state.present() && !has_state_file(); }

  // Time since the last use; prefixes that a key is expected to request again age slowly.
  double age(std::uint64_t now, std::uint64_t then) const {
    constexpr double kHinted = 4;
    return to_double(now - then + 1) / (hints > 0 ? kHinted : 1);
  }
};

}  // namespace sluice::scheduler::prefix
