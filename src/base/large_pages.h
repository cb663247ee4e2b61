// Memory for sequential reading, where page walks every 4 KiB would cost a part of the speed.
#pragma once

#include <cstddef>

namespace sluice {

constexpr std::size_t kLargePage = std::size_t{2} << 20;

// Memory for std::free with at least that alignment; null if there is none. From the size of two large pages
// on it uses those if the system has them; the rest after the last complete one uses small pages.
void* allocate_in_pages(std::size_t bytes, std::size_t alignment);

}  // namespace sluice
