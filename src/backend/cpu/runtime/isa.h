// The instruction sets for which there are kernels.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::backend::cpu {

// Within an architecture each one includes those before it. avx512 means as much of AVX-512 as the machine
// has.
enum class Isa { sse4, avx2, avxvnni, avx512, amx, neon, dotprod, i8mm };

std::string_view name_of(Isa isa);

// The instruction set with that name, or this machine's best if the name is empty. Throws if the machine
// lacks it.
Isa choose_isa(std::string_view name);

// The targets that Highway may choose from.
std::int64_t highway_targets(Isa isa);

}  // namespace sluice::backend::cpu
