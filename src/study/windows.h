// Scoring of a text longer than the context: in windows, each token once.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::study {

// The model reads tokens [begin, end) and is scored on its predictions for [target, end + 1).
struct Window {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t target = 0;
};

// Windows of at most `context` tokens that predict every token but the first once: as many as fit in the
// first window, then at most `stride` in each, preceded by as many as fit. Stride 1 gives every token the
// longest context, stride `context` reads every token about once.
std::vector<Window> rolling_windows(std::int64_t tokens, std::int64_t context, std::int64_t stride);

}  // namespace sluice::study
