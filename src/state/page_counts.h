// Reference counts of the pages of a pool's caches.
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
  // The same after that many more have been taken.
  std::int64_t end_with(std::int64_t more) const {
    return end() + std::max<std::int64_t>(0, more - std::ssize(free_));
  }
  // Throws if fewer are free.
  void expect(std::int64_t wanted) const;
  // Takes the first free page, with one user; throws if none is free.
  std::int32_t take();
  // Adds or removes a user. A page without users is free.
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
