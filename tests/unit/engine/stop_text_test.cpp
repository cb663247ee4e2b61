#include "engine/answer/stop_text.h"

#include <gtest/gtest.h>

namespace sluice::engine::answer {
namespace {

TEST(StopText, HoldsBackWhatMayBecomeAStop) {
  StopText stops({"<end>", "STOP"});
  EXPECT_EQ(stops.push("hello <e"), "hello ");
  EXPECT_EQ(stops.push("nd"), "");
  EXPECT_EQ(stops.push("ing ST"), "<ending ");
  EXPECT_FALSE(stops.stopped());
  EXPECT_EQ(stops.push("OP and more"), "");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.push("never"), "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopText, GivesTheRestAtTheEnd) {
  StopText stops({"<end>"});
  EXPECT_EQ(stops.push("a<en"), "a");
  EXPECT_EQ(stops.finish(), "<en");
}

TEST(StopText, TakesTheFirstOfSeveral) {
  StopText stops({"cd", "bc"});
  EXPECT_EQ(stops.push("abcd"), "a");
  EXPECT_TRUE(stops.stopped());
}

}  // namespace
}  // namespace sluice::engine::answer
