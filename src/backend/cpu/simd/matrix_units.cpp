#include "backend/cpu/simd/matrix_units.h"

#if SLUICE_HAS_AMX

#include <cpuid.h>
#include <hwy/targets.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/cpu/simd/tile_instructions.h"

namespace sluice::backend::cpu::simd {

namespace {

bool processor_has_vectors(bool bf16) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vbmi") && (!bf16 || __builtin_cpu_supports("avx512bf16"));
}

#if SLUICE_EMULATE_AMX

bool processor_has(TileProduct product) {
  return processor_has_vectors(product == TileProduct::bf16);
}

bool system_allows() {
  return true;
}

#else

bool processor_has(TileProduct product) {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const unsigned tiles = 1u << 24 | 1u << (product == TileProduct::bytes ? 25 : 22);
  return processor_has_vectors(product == TileProduct::bf16) &&
         __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & tiles) == tiles;
}

bool system_allows() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

#endif

}  // namespace

bool has_tiles(Isa isa, TileProduct product) {
  static const bool bytes = processor_has(TileProduct::bytes) && system_allows();
  static const bool bf16 = processor_has(TileProduct::bf16) && system_allows();
  return isa == Isa::amx && (product == TileProduct::bytes ? bytes : bf16);
}

bool has_bf16_vectors(Isa isa) {
  static const bool has = processor_has_vectors(true);
  // Tests choose AVX-512 targets of Highway that lack these instructions.
  return has && (isa == Isa::avx512 || isa == Isa::amx) && (hwy::SupportedTargets() & HWY_AVX3_DL) != 0;
}

__attribute__((target("amx-tile"))) void configure_tiles(const TileShape& shape) {
  asm volatile("" ::"r"(&shape) : "memory");  // the compiler does not know that the whole struct is read
  _tile_loadconfig(&shape);
}

__attribute__((target("amx-tile"))) void release_tiles() {
  _tile_release();
}

}  // namespace sluice::backend::cpu::simd

#else

namespace sluice::backend::cpu::simd {

bool has_tiles(Isa, TileProduct) {
  return false;
}
bool has_bf16_vectors(Isa) {
  return false;
}

}  // namespace sluice::backend::cpu::simd

#endif
