#include "checkpoint/weight_store.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace sluice::checkpoint {
namespace {

// Sizes from zero to more than a block of memory, so that blocks are filled, left and skipped.
TEST(WeightStore, TensorsNeitherOverlapNorMove) {
  const std::size_t sizes[] = {0, 1, 63, 64, 65, 4096, std::size_t{3} << 20, std::size_t{40} << 20, 17};
  WeightStore store;
  std::vector<std::pair<std::byte*, std::size_t>> tensors;
  std::size_t total = 0;
  for (int turn = 0; turn < 12; ++turn)
    for (const std::size_t size : sizes) {
      std::byte* data = store.allocate(size);
      ASSERT_NE(data, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
      // Only the ends of the 40 MiB of each round are touched.
      if (size > 0) data[0] = data[size - 1] = static_cast<std::byte>(tensors.size());
      if (size <= 4096) std::memset(data, static_cast<int>(tensors.size()), size);
      tensors.emplace_back(data, size);
      total += size;
    }
  EXPECT_EQ(store.owned_bytes(), total);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto [data, size] = tensors[i];
    const std::size_t step = size <= 4096 ? 1 : size - 1;
    for (std::size_t at = 0; at < size; at += step) ASSERT_EQ(data[at], static_cast<std::byte>(i)) << i;
    for (std::size_t j = i + 1; j < tensors.size(); ++j)
      ASSERT_TRUE(size == 0 || tensors[j].second == 0 || data + size <= tensors[j].first ||
                  tensors[j].first + tensors[j].second <= data);
  }
}

}  // namespace
}  // namespace sluice::checkpoint
