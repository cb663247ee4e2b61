// Floats as sums of BF16 numbers, their pieces (amx_bf16.h), in AVX-512 registers.
#pragma once

#include "backend/cpu/attention/amx_bf16.h"
#include "backend/cpu/simd/matrix_units.h"

#if SLUICE_HAS_AMX

#include "backend/cpu/simd/tile_instructions.h"
#include "backend/cpu/simd/transpose_words.h"

#define SLUICE_BF16_TARGET "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512bf16,avx2,fma"
#define SLUICE_BF16_VECTORS __attribute__((target(SLUICE_BF16_TARGET)))

namespace sluice::backend::cpu::attention::bf16 {

SLUICE_BF16_VECTORS inline __m512 widen(__m256i halves) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

// Returns the BF16 number nearest to x and leaves the remainder in x.
SLUICE_BF16_VECTORS inline __m256i take_piece(__m512& x) {
  const auto piece = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x));
  x = _mm512_sub_ps(x, widen(piece));
  return piece;
}
SLUICE_BF16_VECTORS inline void store_piece(Half* to, __m256i piece) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), piece);
}

}  // namespace sluice::backend::cpu::attention::bf16

#endif
