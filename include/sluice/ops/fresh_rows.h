// Which rows of a packed cache a prompt sees as they were before encoding.
#pragma once

#include <cstdint>

namespace sluice::ops {

// Positions of a prompt form blocks, counted from the start of the sequence. A query sees the rows of its own
// block as they came and those of earlier blocks from codes, so that its bits do not depend on the calls that
// a prompt is cut into, as long as these begin at multiples of a block.
inline constexpr std::int64_t kFreshBlock = 64;

// The first row that the query of row `query` sees as it came, if its call brings the rows from `first_own`
// on.
constexpr std::int64_t first_fresh_row(std::int64_t query, std::int64_t first_own) {
  const std::int64_t block = query / kFreshBlock * kFreshBlock;
  return block > first_own ? block : first_own;
}

}  // namespace sluice::ops
