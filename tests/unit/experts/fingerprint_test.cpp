// XXH64 as libxxhash 0.8.1 computes it.
#include "experts/fingerprint.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::experts {
namespace {

TEST(Fingerprint, IsThatOfTheLibrary) {
  struct Known {
    std::size_t size;
    std::uint64_t seed;
    std::uint64_t hash;
  };
  for (const Known& known :
       {Known{0, 0, 0xef46db3751d8e999}, Known{3, 0, 0x22c08528601d4f27}, Known{4, 1, 0x76c235e6330f623d},
        Known{31, 7, 0x84caa0ef1a8b319d}, Known{32, 0, 0xcc6b8aaada790b2d}, Known{100, 0, 0x4826e367566ea023},
        Known{1000, 0x123456789abcdef, 0x275d68c4dea2e48c}}) {
    std::vector<std::byte> bytes(known.size);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
    EXPECT_EQ(fingerprint(bytes, known.seed), known.hash) << known.size << " bytes";
  }
}

}  // namespace
}  // namespace sluice::experts
