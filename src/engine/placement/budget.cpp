#include "engine/placement/budget.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::engine::placement {

void Budget::set_cache(experts::Cache* cache, std::int64_t least, std::int64_t fixed) {
  const std::lock_guard lock(mutex_);
  cache_ = cache;
  least_ = least;
  fixed_ = fixed;
}

std::uint64_t Budget::left() {
  const std::lock_guard lock(mutex_);
  return limit_ > claimed_ ? limit_ - claimed_ : 0;
}

std::uint64_t Budget::spare() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t taken = claimed_ + (cache_ != nullptr ? cache_->bytes(least_) : 0);
  return limit_ > taken ? limit_ - taken : 0;
}

// Layers have slots of different sizes and different numbers of experts, so the number is found by search.
std::int64_t Budget::slots_beside(std::uint64_t claimed) const {
  if (fixed_ > 0) return fixed_;
  const std::uint64_t room = limit_ > claimed ? limit_ - claimed : 0;
  std::int64_t most = 0;
  for (int l = 0; l < cache_->store().layers(); ++l)
    most = std::max(most, cache_->store().layer(l).experts());
  std::int64_t low = 0;
  while (low < most) {
    const std::int64_t middle = (low + most + 1) / 2;
    if (cache_->bytes(middle) <= room)
      low = middle;
    else
      most = middle - 1;
  }
  return low;
}

Budget::Claim Budget::claim(std::uint64_t bytes, std::uint64_t beside) {
  add(bytes, beside);
  return {*this, bytes};
}

void Budget::Claim::change(std::uint64_t bytes) {
  if (bytes > bytes_) budget_->add(bytes - bytes_, 0);
  if (bytes < bytes_) budget_->give_back(bytes_ - bytes);
  bytes_ = bytes;
}

void Budget::add(std::uint64_t bytes, std::uint64_t beside) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t all = claimed_ + bytes;
  const std::uint64_t least = all + beside + (cache_ != nullptr ? cache_->bytes(least_) : 0);
  const bool limited = limit_ > 0 && fixed_ == 0;
  if (limited && least > limit_)
    fail(ErrorKind::resource, "{}{}{:.1f} MB of memory are needed and {:.1f} MB are allowed; {} {} would do",
         whose_, whose_.empty() ? "" : ": ", least / 1e6, limit_ / 1e6, option_, least);
  if (cache_ != nullptr) cache_->set_slots(slots_beside(all));
  claimed_ = all;
}

void Budget::give_back(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  claimed_ -= bytes;
  if (cache_ != nullptr) cache_->set_slots(slots_beside(claimed_));
}

}  // namespace sluice::engine::placement
