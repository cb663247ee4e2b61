#include "study/windows.h"

#include <algorithm>

namespace sluice::study {

std::vector<Window> rolling_windows(std::int64_t tokens, std::int64_t context, std::int64_t stride) {
  std::vector<Window> windows;
  // The last token is predicted but not read.
  for (std::int64_t end = 0; end < tokens - 1;) {
    const std::int64_t target = end + 1;
    end = std::min(tokens - 1, end + (windows.empty() ? context : stride));
    windows.push_back({std::max<std::int64_t>(0, end - context), end, target});
  }
  return windows;
}

}  // namespace sluice::study
