#include "base/large_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace sluice {

void* allocate_in_pages(std::size_t bytes, std::size_t alignment) {
  const bool large = bytes >= 2 * kLargePage;
  void* data = nullptr;
  if (::posix_memalign(&data, large ? kLargePage : alignment, std::max(bytes, alignment)) != 0)
    return nullptr;
  if (large) ::madvise(data, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
  return data;
}

}  // namespace sluice
