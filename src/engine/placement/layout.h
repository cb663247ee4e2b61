// Places of a model's tensors in one block of memory, computed before anything is allocated.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <vector>

#include "sluice/ops/weight.h"

namespace sluice::engine::placement {

std::size_t bytes_of(const ops::ConstView& view);

bool same_format(const ops::Weight& a, const ops::Weight& b);

// Placed views must not move until copy() has pointed them at the block.
class Layout {
 public:
  void place(ops::ConstView& view);
  void place(ops::Weight& weight);
  // Experts that are separate in the checkpoint become one stack.
  void place(ops::ExpertWeights& experts);

  // Places matrices of one format and width one after the other, so that `joined` is all of them: more rows,
  // or one more matrix of a stack. Does nothing if the formats differ.
  void join(std::initializer_list<const ops::Weight*> parts, ops::Weight& joined);

  std::size_t bytes() const { return bytes_; }

  // Calls put(to, from, bytes) for everything placed; `progress` receives bytes done and in all.
  void copy(std::byte* block, const std::function<void(void* to, const void* from, std::size_t bytes)>& put,
            const std::function<void(std::uint64_t, std::uint64_t)>& progress);

 private:
  struct Copy {
    const void* from;
    std::size_t bytes;
    std::size_t at;
  };
  struct Patch {
    ops::ConstView* view;
    std::size_t at;
  };

  void append(const ops::ConstView& view);
  void align();

  std::size_t bytes_ = 0;
  std::vector<Copy> copies_;
  std::vector<Patch> patches_;
  std::map<const void*, std::size_t> places_;  // tied tensors are copied once
};

}  // namespace sluice::engine::placement
