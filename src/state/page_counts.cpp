#include "state/page_counts.h"

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::state {

void PageCounts::expect(std::int64_t wanted) const {
  if (free() < wanted)
    fail(ErrorKind::resource, "{} pages of the caches are needed and {} of {} pages are free", wanted, free(),
         pages());
}

std::int32_t PageCounts::take() {
  expect(1);
  if (free_.empty()) {
    users_.push_back(1);
    return to_int(end() - 1);
  }
  const std::int32_t page = *free_.begin();
  free_.erase(free_.begin());
  users_[to_size(page)] = 1;
  return page;
}

std::int32_t& PageCounts::users_of(std::int32_t page) {
  if (page >= end() || users_[to_size(page)] == 0) fail(ErrorKind::internal, "page {} is free", page);
  return users_[to_size(page)];
}

void PageCounts::share(std::int32_t page) {
  ++users_of(page);
}

void PageCounts::release(std::int32_t page) {
  if (--users_of(page) > 0) return;
  free_.insert(page);
  while (!free_.empty() && *free_.rbegin() == end() - 1) {
    free_.erase(std::prev(free_.end()));
    users_.pop_back();
  }
}

}  // namespace sluice::state
