// The AMX instructions; or, if a build sets SLUICE_EMULATE_AMX, functions that do the same, so that any
// processor with AVX-512 can test the code that uses them.
#pragma once

#include <immintrin.h>

#if SLUICE_EMULATE_AMX

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/matrix_units.h"

namespace sluice::backend::cpu::simd {

void emulate_configure(const TileShape& shape);
void emulate_zero(int tile);
void emulate_load(int tile, const void* from, std::size_t stride);
void emulate_store(int tile, void* to, std::size_t stride);
// sums += the bytes of `a`, signed or not, times the signed bytes of `b`.
void emulate_bytes(int sums, int a, int b, bool signed_a);
void emulate_bf16(int sums, int a, int b);

}  // namespace sluice::backend::cpu::simd

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbusd
#undef _tile_dpbf16ps
#define _tile_loadconfig(shape) ::sluice::backend::cpu::simd::emulate_configure(*(shape))
#define _tile_release() ::sluice::backend::cpu::simd::emulate_configure({})
#define _tile_zero(tile) ::sluice::backend::cpu::simd::emulate_zero(tile)
#define _tile_loadd(tile, from, stride) ::sluice::backend::cpu::simd::emulate_load(tile, from, stride)
#define _tile_stored(tile, to, stride) ::sluice::backend::cpu::simd::emulate_store(tile, to, stride)
#define _tile_dpbssd(sums, a, b) ::sluice::backend::cpu::simd::emulate_bytes(sums, a, b, true)
#define _tile_dpbusd(sums, a, b) ::sluice::backend::cpu::simd::emulate_bytes(sums, a, b, false)
#define _tile_dpbf16ps(sums, a, b) ::sluice::backend::cpu::simd::emulate_bf16(sums, a, b)

#endif
