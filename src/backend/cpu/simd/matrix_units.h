// The matrix units of x86 (AMX): whether they can be used, and the shape of their tiles. Also whether vectors
// can multiply BF16.
#pragma once

#include <cstdint>

#include "backend/cpu/runtime/isa.h"

#if defined(__x86_64__) && defined(__linux__)
#define SLUICE_HAS_AMX 1
#else
#define SLUICE_HAS_AMX 0
#endif

namespace sluice::backend::cpu::simd {

enum class TileProduct { bytes, bf16 };

// Whether this processor supports such tile products and the AVX-512 that goes with them, the system lets
// this process use them, and `isa` allows it. Queries the processor once.
bool has_tiles(Isa isa, TileProduct product);
// Whether its AVX-512 multiplies BF16 numbers.
bool has_bf16_vectors(Isa isa);

#if SLUICE_HAS_AMX

// The layout that the processor reads.
struct alignas(64) TileShape {
  std::uint8_t palette = 1;
  std::uint8_t start = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
// Configures the calling thread's tiles, until it releases them.
void configure_tiles(const TileShape& shape);
void release_tiles();

// A compiler barrier, because the compiler does not know what tile instructions read and write.
inline void order_memory() {
  asm volatile("" ::: "memory");
}

#endif

}  // namespace sluice::backend::cpu::simd
