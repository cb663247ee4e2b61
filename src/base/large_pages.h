// Memory that is read from end to end: walking page tables every 4 KiB would cost a part of that speed.
#pragma once

#include <cstddef>

namespace sluice {

constexpr std::size_t kLargePage = std::size_t{2} << 20;

// At least `alignment`-aligned memory for std::free, null where there is none. From two large pages on it
// lies in such, where the system has them; what is left behind the last whole one stays in small ones.
void* allocate_in_pages(std::size_t bytes, std::size_t alignment);

}  // namespace sluice
