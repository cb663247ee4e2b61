// Recognising bytes again: XXH3, which a core computes many times faster than a disk reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "experts/expert.h"

namespace sluice::experts {

std::uint64_t fingerprint(std::span<const std::byte> bytes, std::uint64_t seed = 0);
// Of an expert's tensors in their order, each seeded with the one before; wherever they lie.
std::uint64_t fingerprint(const Expert& expert);

}  // namespace sluice::experts
