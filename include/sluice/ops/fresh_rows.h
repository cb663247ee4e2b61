// Which rows of a packed cache a prompt reads unquantised.
#pragma once

#include <cstdint>

namespace sluice::ops {

// Positions of a prompt form blocks, counted from the start of the sequence. A query reads the rows of its
// own block unquantised and those of earlier blocks from codes, so its bits do not depend on how a prompt is
// split into calls, as long as these begin at multiples of a block.
inline constexpr std::int64_t kFreshBlock = 64;

// The first row that the query of row `query` reads unquantised, if its call provides the rows from
// `first_own` on.
constexpr std::int64_t first_fresh_row(std::int64_t query, std::int64_t first_own) {
  const std::int64_t block = query / kFreshBlock * kFreshBlock;
  return block > first_own ? block : first_own;
}

}  // namespace sluice::ops
