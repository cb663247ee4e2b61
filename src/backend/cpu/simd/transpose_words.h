// Sixteen rows of sixteen 32-bit words in AVX-512 registers.
#pragma once

#include "backend/cpu/simd/matrix_units.h"

#if SLUICE_HAS_AMX

#include <immintrin.h>

// GCC 12 emits warnings for its own _mm512_undefined().
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace sluice::backend::cpu::simd {

// Transposes them.
__attribute__((target("avx512f"))) inline void transpose(__m512i (&v)[16]) {
  __m512i w[16];
  for (int i = 0; i < 16; i += 2) {
    w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      v[i + 2 * j] = _mm512_unpacklo_epi64(w[i + j], w[i + j + 2]);
      v[i + 2 * j + 1] = _mm512_unpackhi_epi64(w[i + j], w[i + j + 2]);
    }
  for (int i = 0; i < 4; ++i)
    for (int half = 0; half < 16; half += 8) {
      w[half + i] = _mm512_shuffle_i32x4(v[half + i], v[half + i + 4], 0x88);
      w[half + i + 4] = _mm512_shuffle_i32x4(v[half + i], v[half + i + 4], 0xdd);
    }
  for (int i = 0; i < 8; ++i) {
    v[i] = _mm512_shuffle_i32x4(w[i], w[i + 8], 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(w[i], w[i + 8], 0xdd);
  }
}

}  // namespace sluice::backend::cpu::simd

#endif
