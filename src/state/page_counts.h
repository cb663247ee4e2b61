// The pages of a pool's caches: which are free, and how many sequences use each of the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace sluice::state {

class PageCounts {
 public:
  explicit PageCounts(std::int64_t pages) : pages_(pages) {}

  std::int64_t pages() const { return pages_; }
  std::int64_t free() const { return pages_ - end() + std::ssize(free_); }
  // All pages from this one on are free.
  std::int64_t end() const { return std::ssize(users_); }
  // The same after so many more are taken.
  std::int64_t end_with(std::int64_t more) const {
    return end() + std::max<std::int64_t>(0, more - std::ssize(free_));
  }
  // Throws where fewer are free.
  void expect(std::int64_t wanted) const;
  // The first free page, with one user; throws where none is free.
  std::int32_t take();
  // One user more, one less. A page without users is free again.
  void share(std::int32_t page);
  void release(std::int32_t page);
  bool shared(std::int32_t page) const { return users_[page] > 1; }

 private:
  std::int32_t& users_of(std::int32_t page);

  std::int64_t pages_;
  std::vector<std::int32_t> users_;  // by page, up to the last one that has any
  std::set<std::int32_t> free_;      // before that one
};

}  // namespace sluice::state
