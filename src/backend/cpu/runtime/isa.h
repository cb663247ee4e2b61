// The instruction sets that kernels exist for.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::backend::cpu {

// Of one architecture each has all that stand before it. avx512 is as much of AVX-512 as the machine has.
enum class Isa { sse4, avx2, avxvnni, avx512, amx, neon, dotprod, i8mm };

std::string_view name_of(Isa isa);

// The one of that name, or the best of this machine where the name is empty. Refuses what the machine lacks.
Isa choose_isa(std::string_view name);

// What Highway may choose from.
std::int64_t highway_targets(Isa isa);

}  // namespace sluice::backend::cpu
