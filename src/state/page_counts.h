// The pages of a pool's caches: which are free, and how many sequences use each of the others.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::state {

class PageCounts {
 public:
  explicit PageCounts(std::int64_t pages);

  std::int64_t pages() const { return std::ssize(users_); }
  std::int64_t free() const { return std::ssize(free_); }
  // Throws where fewer are free.
  void expect(std::int64_t wanted) const;
  // A page with one user; throws where none is free.
  std::int32_t take();
  // One user more, one less. A page without users is free again.
  void share(std::int32_t page);
  void release(std::int32_t page);
  bool shared(std::int32_t page) const { return users_[page] > 1; }

 private:
  std::vector<std::int32_t> users_;  // by page
  std::vector<std::int32_t> free_;   // the next one last
};

}  // namespace sluice::state
