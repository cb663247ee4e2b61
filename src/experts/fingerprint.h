// Checksums that identify bytes: XXH3, which a core computes many times faster than a disk reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "experts/expert.h"

namespace sluice::experts {

std::uint64_t fingerprint(std::span<const std::byte> bytes, std::uint64_t seed = 0);
// Of an expert's tensors in order, each seeded with the previous one; their addresses do not matter.
std::uint64_t fingerprint(const Expert& expert);

}  // namespace sluice::experts
