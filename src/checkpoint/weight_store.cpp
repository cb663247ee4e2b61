#include "checkpoint/weight_store.h"

#include <algorithm>

#include "base/error.h"
#include "base/large_pages.h"

namespace sluice::checkpoint {

namespace {

constexpr std::size_t kAlignment = 64;
// Blocks grow with the total, so that a few small tensors do not take a large page.
constexpr std::size_t kLeastBlock = 64 * 1024;
constexpr std::size_t kMostBlock = 16 * kLargePage;

}  // namespace

std::byte* WeightStore::allocate(std::size_t bytes) {
  const std::size_t taken = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (blocks_.empty() || taken > left_.size()) {
    const std::size_t size = std::max(taken, std::clamp(owned_bytes_, kLeastBlock, kMostBlock));
    auto* block = static_cast<std::byte*>(allocate_in_pages(size, kAlignment));
    if (block == nullptr) fail(ErrorKind::resource, "no memory for weights of {} bytes", bytes);
    blocks_.emplace_back(block);
    left_ = {block, size};
  }
  std::byte* data = left_.data();
  left_ = left_.subspan(taken);
  owned_bytes_ += bytes;
  return data;
}

}  // namespace sluice::checkpoint
