// What the AMX kernels share.
#pragma once

#include "backend/cpu/simd/matrix_units.h"

#if SLUICE_HAS_AMX

#include <algorithm>

#include "backend/cpu/linear/integer/amx_int8.h"
#include "backend/cpu/linear/integer/product.h"
#include "backend/cpu/simd/tile_instructions.h"
#include "backend/cpu/simd/transpose_words.h"

#define SLUICE_AMX __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,amx-tile,amx-int8")))

namespace sluice::backend::cpu::linear::integer::amx {

// Elements of a row per tile product.
inline std::int64_t step_elements(const MatrixFormat& format) {
  return std::min<std::int64_t>(64, format.group_size);
}

struct RowAddresses {
  const std::byte* at[kRows];
  explicit RowAddresses(const Product& p) {
    for (std::int64_t r = 0; r < kRows; ++r)
      at[r] = p.matrix.values + std::min(p.row + r, p.format.rows - 1) * p.format.row_bytes;
  }
};

// Unpacks the codes of kRows rows to bytes: the even columns, then the odd ones.
template <int kStep>
SLUICE_AMX inline void unpack(const RowAddresses& rows, std::int64_t at, std::uint8_t (*codes)[16][64]) {
  const __m512i low = _mm512_set1_epi8(15);
  for (int half = 0; half < kRows / 16; ++half) {
    std::uint8_t(*to)[64] = codes[half];
    const std::byte* const* from = rows.at + 16 * half;
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) {
      if constexpr (kStep == 64) {
        const __m512i twice =
            _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from[r] + at)));
        const __m512i shifted = _mm512_mask_srli_epi16(twice, 0xffff0000u, twice, 4);
        _mm512_store_si512(to[r], _mm512_and_si512(shifted, low));
      } else {
        const __m256i twice =
            _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from[r] + at)));
        const __m256i shifted = _mm256_mask_srli_epi16(twice, 0xff00u, twice, 4);
        _mm256_store_si256(reinterpret_cast<__m256i*>(to[r]),
                           _mm256_and_si256(shifted, _mm512_castsi512_si256(low)));
      }
    }
  }
}

// Prefetches part `part` of `parts` of the following rows.
SLUICE_AMX inline void prefetch_next(const Product& p, const RowAddresses& rows, std::int64_t part,
                                     std::int64_t parts) {
  const std::int64_t bytes = kRows * p.format.row_bytes;
  for (std::int64_t at = bytes * part / parts / 64 * 64; at < bytes * (part + 1) / parts; at += 64)
    _mm_prefetch(reinterpret_cast<const char*>(rows.at[0] + bytes + at), _MM_HINT_T1);
}

}  // namespace sluice::backend::cpu::linear::integer::amx

#endif
