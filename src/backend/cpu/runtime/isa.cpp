#include "backend/cpu/runtime/isa.h"

#include <fmt/format.h>
#include <hwy/targets.h>

#include <algorithm>
#include <vector>

#include "backend/cpu/linear/integer/arm_int8.h"
#include "backend/cpu/simd/matrix_units.h"
#include "base/error.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace sluice::backend::cpu {

namespace {

constexpr std::string_view kNames[] = {"sse4", "avx2", "avxvnni", "avx512", "amx", "neon", "dotprod", "i8mm"};

// Highway has no target for it.
bool has_avx_vnni() {
#if HWY_ARCH_X86
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0;
#else
  return false;
#endif
}

// The machine's targets; a native build for AVX2, or for AVX-512 without VNNI, compiles no others.
std::int64_t machine_targets() {
#if defined(HWY_COMPILE_ONLY_STATIC)
  return hwy::SupportedTargets() & HWY_STATIC_TARGET;
#else
  return hwy::SupportedTargets();
#endif
}

bool has(Isa isa) {
  // Those for which kernels were compiled: a native build has none below its own.
  const std::int64_t targets = machine_targets() & (HWY_STATIC_TARGET | (HWY_STATIC_TARGET - 1));
  switch (isa) {
    case Isa::sse4:
      return (targets & HWY_SSE4) != 0;
    case Isa::avx2:
      return (targets & HWY_AVX2) != 0;
    case Isa::avxvnni:
      return (targets & HWY_AVX2) != 0 && has_avx_vnni();
    case Isa::avx512:
      return (targets & (HWY_AVX3 | HWY_AVX3_DL)) != 0;
    case Isa::amx:
      return (targets & HWY_AVX3_DL) != 0 && (simd::has_tiles(Isa::amx, simd::TileProduct::bytes) ||
                                              simd::has_tiles(Isa::amx, simd::TileProduct::bf16));
    case Isa::neon:
      return HWY_ARCH_ARM;
    case Isa::dotprod:
      return linear::integer::arm::available(Isa::i8mm) != linear::integer::arm::Bytes::none;
    case Isa::i8mm:
      return linear::integer::arm::available(Isa::i8mm) == linear::integer::arm::Bytes::matrices;
  }
  return false;
}

}  // namespace

std::string_view name_of(Isa isa) {
  return kNames[static_cast<std::size_t>(isa)];
}

Isa choose_isa(std::string_view name) {
  std::vector<std::string_view> known;
  Isa best = HWY_ARCH_ARM ? Isa::neon : Isa::sse4;
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    const auto isa = static_cast<Isa>(i);
    if (!has(isa)) continue;
    if (kNames[i] == name) return isa;
    known.push_back(kNames[i]);
    best = isa;
  }
  if (name.empty()) return best;
  fail(ErrorKind::input,
       "there are no kernels for the instruction set '{}' on this machine; there are for {}", name,
       fmt::join(known, ", "));
}

std::int64_t highway_targets(Isa isa) {
  std::int64_t targets = machine_targets();
  if (isa < Isa::avx512) targets &= ~(HWY_AVX3 | HWY_AVX3_DL);
  if (isa < Isa::avx2) targets &= ~HWY_AVX2;
  return targets;
}

}  // namespace sluice::backend::cpu
