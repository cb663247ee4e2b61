// Gathers parts of a backend's memory in host memory and scatters them again, of any size and position.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "cuda_device.h"
#include "printed_seed.h"
#include "sluice/ops/backend.h"

namespace sluice::ops {
namespace {

class Gathering : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string_view(GetParam()) == "cuda") {
      SLUICE_NEED_CUDA();
    }
    backend_ = make_backend(GetParam());
    random_.seed(printed_seed());
  }
  std::vector<std::byte> random_bytes(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }
  // Disjoint parts of one block of memory, as offsets and sizes.
  using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;
  Ranges some_ranges(std::size_t count, std::size_t unit, std::size_t longest) {
    Ranges ranges;
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
      at += unit * (random_() % 5);
      const std::size_t bytes = unit * (random_() % (longest / unit + 1));
      ranges.push_back({at, bytes});
      at += bytes;
    }
    std::shuffle(ranges.begin(), ranges.end(), random_);
    return ranges;
  }
  void check(const Ranges& ranges, bool pinned) {
    std::size_t all = 1;
    std::size_t together = 0;
    for (const auto& [at, bytes] : ranges) {
      all = std::max(all, at + bytes);
      together += bytes;
    }
    const Buffer memory = backend_->allocate(all);
    std::vector<std::byte> contents = random_bytes(all);
    backend_->upload(memory.data(), contents.data(), all);
    std::vector<MemoryPart> parts;
    for (const auto& [at, bytes] : ranges)
      parts.push_back({static_cast<std::byte*>(memory.data()) + at, bytes});

    const Buffer pinned_memory = backend_->allocate_pinned(together + 1);
    std::vector<std::byte> pageable(together + 1);
    auto* const host = pinned ? static_cast<std::byte*>(pinned_memory.data()) : pageable.data();
    std::memset(host, 0xa5, together + 1);
    backend_->gather(host, parts);
    std::vector<std::byte> expected;
    for (const auto& [at, bytes] : ranges)
      expected.insert(expected.end(), contents.begin() + static_cast<std::ptrdiff_t>(at),
                      contents.begin() + static_cast<std::ptrdiff_t>(at + bytes));
    EXPECT_EQ(std::vector(host, host + together), expected);
    EXPECT_EQ(host[together], std::byte{0xa5});

    const std::vector<std::byte> others = random_bytes(together);
    std::copy(others.begin(), others.end(), host);
    backend_->scatter(parts, host);
    backend_->synchronize();
    std::size_t from = 0;
    for (const auto& [at, bytes] : ranges) {
      std::copy_n(others.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                  contents.begin() + static_cast<std::ptrdiff_t>(at));
      from += bytes;
    }
    std::vector<std::byte> now(all);
    backend_->download(now.data(), memory.data(), all);
    EXPECT_EQ(now, contents);
  }

  std::unique_ptr<Backend> backend_;
  std::mt19937 random_;
};

TEST_P(Gathering, CopiesExactlyTheBytesOfItsParts) {
  for (const bool pinned : {true, false}) {
    check({}, pinned);
    check({{0, 0}}, pinned);
    for (const std::size_t unit : {1, 4, 16}) {
      check(some_ranges(1, unit, 100), pinned);
      check(some_ranges(7, unit, 5000), pinned);
      check(some_ranges(300, unit, 700), pinned);  // more than one launch takes
    }
    check(some_ranges(6, 16, 3 << 20), pinned);
    check(some_ranges(2, 1, 10 << 20), pinned);  // more than the pinned buffer holds
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Gathering, ::testing::Values("reference", "cpu", "cuda"));

}  // namespace
}  // namespace sluice::ops
