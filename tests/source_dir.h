// The location of the checkout. Only one file is compiled with its path, so that compiler caches work for
// every checkout.
#pragma once

#include <string>

namespace sluice {

std::string source_dir();
std::string test_data();

}  // namespace sluice
