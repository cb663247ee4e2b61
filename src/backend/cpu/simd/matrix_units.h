// The matrix units of x86 (AMX): who may use them, and the shape of their tiles. Also who has their products
// of BF16 numbers in vectors.
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

// Whether this processor multiplies such tiles, has the AVX-512 that goes with them, and the system lets this
// process use them, and `isa` allows it. Asks the processor once.
bool has_tiles(Isa isa, TileProduct product);
// Whether its AVX-512 multiplies BF16 numbers.
bool has_bf16_vectors(Isa isa);

#if SLUICE_HAS_AMX

// As the processor reads it.
struct alignas(64) TileShape {
  std::uint8_t palette = 1;
  std::uint8_t start = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
// For the calling thread, until it releases them.
void configure_tiles(const TileShape& shape);
void release_tiles();

// The compiler does not know what tiles read and write.
inline void order_memory() {
  asm volatile("" ::: "memory");
}

#endif

}  // namespace sluice::backend::cpu::simd
