// Statistics of a cache of experts.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::experts {

struct Usage {
  std::uint64_t hits = 0;  // experts needed by a pass that were in a slot
  std::uint64_t misses = 0;
  std::uint64_t foreseen = 0;  // misses that were read ahead, before they were chosen
  std::uint64_t unused = 0;    // read ahead, but not chosen by the pass they were for
  std::uint64_t bytes_read = 0;
  double wait_seconds = 0;                       // waiting for reads with nothing left to compute
  std::vector<std::vector<std::uint32_t>> uses;  // passes that needed an expert, by layer and expert
};

}  // namespace sluice::experts
