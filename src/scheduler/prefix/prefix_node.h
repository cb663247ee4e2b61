// A node of the tree of remembered prompts, for its own sources.
#pragma once

#include "base/integer_cast.h"
#include "scheduler/prefix/prefix_tree.h"

namespace sluice::scheduler {

// When something was used: by the clock of its share, which decides what goes, and by that of all, which
// decides what stays on the device.
struct PrefixTree::Use {
  std::uint64_t own = 0;
  std::uint64_t all = 0;
};

struct PrefixTree::Share {
  std::uint64_t now = 0;    // counts what was asked
  std::uint64_t bytes = 0;  // of rows and states, wherever they lie in memory
};

struct PrefixTree::Node {
  Node* parent = nullptr;
  Share* share = nullptr;
  std::int64_t depth = 0;  // blocks
  Children children;
  std::vector<std::int32_t> tail;  // the rest of the prompt that ended here last, less than a block
  std::int32_t page = -1;          // with the rows of its block and those before it in that page
  SavedState rows;                 // of its block, in the host's memory
  KeptState state;
  bool lost_state = false;
  bool rows_decoded = false;  // computed as an answer, or behind one
  bool state_decoded = false;
  FilePtr rows_file;  // with the rows of its block
  FilePtr state_file;
  Use used;
  Use state_used;
  int continued = 0;  // states that were kept behind this one, with none between
  int hints = 0;      // keys whose last prompt goes through here
  std::uint64_t hits = 0;
  std::uint64_t charged = 0;  // bytes of its share

  static bool there(const FilePtr& file) { return file != nullptr && !file->gone; }
  bool has_rows_file() const { return there(rows_file); }
  bool has_state_file() const { return there(state_file); }
  bool in_memory() const { return page >= 0 || rows != nullptr; }
  bool has_rows() const { return in_memory() || has_rows_file(); }
  bool is_empty() const { return !has_rows() && !state.present() && !has_state_file(); }

  // How long ago by a clock; what a key is expected to ask for again ages slowly.
  double age(std::uint64_t now, std::uint64_t then) const {
    constexpr double kHinted = 4;
    return to_double(now - then + 1) / (hints > 0 ? kHinted : 1);
  }
};

}  // namespace sluice::scheduler
