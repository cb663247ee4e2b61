// Where the checkout lies. One file alone is compiled with its path, so that compilers' caches serve every
// checkout.
#pragma once

#include <string>

namespace sluice {

std::string source_dir();
std::string test_data();

}  // namespace sluice
