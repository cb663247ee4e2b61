// A seed for random data, another one in every run, which the output of the run names.
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <random>

namespace sluice {

inline unsigned printed_seed() {
  const unsigned seed = std::random_device()();
  std::cout << "seed " << seed << std::endl;  // at once: the test may crash
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  return seed;
}

}  // namespace sluice
