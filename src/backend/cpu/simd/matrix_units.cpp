#define HWY_WANT_AVX3_DL  // which every processor with tiles has
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS 0xFFF007FLL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/matrix_units.cpp"
#include "backend/cpu/simd/matrix_units.h"

#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::simd::HWY_NAMESPACE {

bool has_best_vectors() {
  return HWY_TARGET == HWY_AVX3_DL;
}

}  // namespace sluice::backend::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#if SLUICE_HAS_AMX

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sluice::backend::cpu::simd {

HWY_EXPORT(has_best_vectors);

namespace {

bool processor_has_vectors(bool bf16) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vbmi") && (!bf16 || __builtin_cpu_supports("avx512bf16"));
}

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

}  // namespace

bool has_tiles(TileProduct product) {
  static const bool bytes = processor_has(TileProduct::bytes) && system_allows();
  static const bool bf16 = processor_has(TileProduct::bf16) && system_allows();
  // Who asks for a lesser instruction set, as tests do, asks for what is done without tiles.
  return (product == TileProduct::bytes ? bytes : bf16) && HWY_DYNAMIC_DISPATCH(has_best_vectors)();
}

bool has_bf16_vectors() {
  static const bool has = processor_has_vectors(true);
  return has && HWY_DYNAMIC_DISPATCH(has_best_vectors)();
}

__attribute__((target("amx-tile"))) void configure_tiles(const TileShape& shape) {
  asm volatile("" ::"r"(&shape) : "memory");  // the compiler does not know that all of it is read
  _tile_loadconfig(&shape);
}

__attribute__((target("amx-tile"))) void release_tiles() {
  _tile_release();
}

}  // namespace sluice::backend::cpu::simd

#else

namespace sluice::backend::cpu::simd {

bool has_tiles(TileProduct) {
  return false;
}
bool has_bf16_vectors() {
  return false;
}

}  // namespace sluice::backend::cpu::simd

#endif
#endif
