#include "text/normalizer.h"

#include <gtest/gtest.h>

#include "unit/text/random_text.h"

namespace sluice::text {
namespace {

TEST(Nfc, Composes) {
  EXPECT_EQ(nfc("plain ASCII"), "plain ASCII");
  EXPECT_EQ(nfc("cafe\u0301"), "caf\u00e9");
  EXPECT_EQ(nfc("a\u0308\u0323"), "\u1ea1\u0308");      // reordered, then composed
  EXPECT_EQ(nfc("\u1100\u1161\u11a8"), "\uac01");       // Hangul
  EXPECT_EQ(nfc("\uac00\u11a7"), "\uac00\u11a7");       // the base itself is not a trailing consonant
  EXPECT_EQ(nfc("\u212b"), "\u00c5");                   // singleton
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093c");             // excluded from composition
  EXPECT_EQ(nfc("\u0301abc\u0301"), "\u0301ab\u0107");  // a mark at the start has nothing to combine with
  EXPECT_EQ(nfc("e\u0301\u0301"), "\u00e9\u0301");      // blocked
  EXPECT_EQ(nfc("\u1e9b\u0323"), "\u1e9b\u0323");       // from the standard's examples
}

TEST(Nfc, IsIdempotent) {
  const RandomText random_text;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::string once = nfc(random_text(i));
    ASSERT_EQ(nfc(once), once) << "string " << i;
  }
}

}  // namespace
}  // namespace sluice::text
