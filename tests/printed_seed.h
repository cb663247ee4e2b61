// A seed for random data, different in every run and printed in its output.
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <random>

namespace sluice {

inline unsigned printed_seed() {
  const unsigned seed = std::random_device()();
  std::cout << "seed " << seed << std::endl;  // flushed, because the test may crash
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  return seed;
}

}  // namespace sluice
