#include "backend/cpu/tile_units.h"

#if SLUICE_HAS_AMX

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sluice::backend::cpu {

namespace {

bool processor_has(TileProduct product) {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const unsigned tiles = 1u << 24 | 1u << (product == TileProduct::bytes ? 25 : 22);
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         (product == TileProduct::bytes || __builtin_cpu_supports("avx512bf16")) &&
         __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & tiles) == tiles;
}

bool system_allows() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool has_tiles(TileProduct product) {
  static const bool bytes = processor_has(TileProduct::bytes) && system_allows();
  static const bool bf16 = processor_has(TileProduct::bf16) && system_allows();
  return product == TileProduct::bytes ? bytes : bf16;
}

__attribute__((target("amx-tile"))) void configure_tiles(const TileShape& shape) {
  asm volatile("" ::"r"(&shape) : "memory");  // the compiler does not know that all of it is read
  _tile_loadconfig(&shape);
}

__attribute__((target("amx-tile"))) void release_tiles() {
  _tile_release();
}

}  // namespace sluice::backend::cpu

#else

namespace sluice::backend::cpu {

bool has_tiles(TileProduct) {
  return false;
}

}  // namespace sluice::backend::cpu

#endif
