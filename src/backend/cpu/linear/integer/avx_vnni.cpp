// The integer products for AVX2 with VNNI, which some processors without AVX-512 have. Left out of builds for
// processors with AVX-512.
#define SLUICE_AVX_VNNI 1
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS 0xFFF01FFLL  // all above AVX2
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/linear/integer/avx_vnni.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "backend/cpu/linear/integer/product.h"

#if HWY_TARGET == HWY_AVX2 && !defined(__AVX512F__)
#include "backend/cpu/linear/integer/direct_moved-inl.h"
#include "backend/cpu/linear/integer/direct_stored-inl.h"
#include "backend/cpu/linear/integer/driver-inl.h"
#endif

#if HWY_ONCE
namespace sluice::backend::cpu::linear::integer {

void run_avx_vnni(Context& context, std::span<const Linear> ops) {
#if HWY_ARCH_X86 && !defined(__AVX512F__)
  N_AVX_VNNI::integer_linears(context, ops);
#else
  run_integer_linears(context, ops);
#endif
}

}  // namespace sluice::backend::cpu::linear::integer
#endif
