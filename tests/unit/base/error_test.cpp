#include "base/error.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Error, CarriesKindAndSentence) {
  try {
    fail(ErrorKind::checkpoint, "tensor '{}' has {} bytes, expected {}", "x", 3, 4);
    FAIL() << "fail() returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::checkpoint);
    EXPECT_STREQ(error.what(), "tensor 'x' has 3 bytes, expected 4");
    EXPECT_EQ(name(error.kind()), "checkpoint");
  }
}

}  // namespace
}  // namespace sluice
