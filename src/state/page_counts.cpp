#include "state/page_counts.h"

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::state {

PageCounts::PageCounts(std::int64_t pages) : users_(to_size(pages)) {
  for (auto page = to_int(pages); page-- > 0;) free_.push_back(page);
}

void PageCounts::expect(std::int64_t wanted) const {
  if (free() < wanted)
    fail(ErrorKind::resource, "{} pages of the caches are needed and {} of {} pages are free", wanted, free(),
         pages());
}

std::int32_t PageCounts::take() {
  expect(1);
  const std::int32_t page = free_.back();
  free_.pop_back();
  users_[page] = 1;
  return page;
}

void PageCounts::share(std::int32_t page) {
  std::int32_t& users = users_[page];
  if (users == 0) fail(ErrorKind::internal, "page {} is free and cannot be shared", page);
  ++users;
}

void PageCounts::release(std::int32_t page) {
  std::int32_t& users = users_[page];
  if (users == 0) fail(ErrorKind::internal, "page {} is free already", page);
  if (--users == 0) free_.push_back(page);
}

}  // namespace sluice::state
