#define HWY_WANT_AVX3_DL  // for VNNI
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS 0xFFF007FLL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/linear/integer/driver.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "backend/cpu/linear/integer/driver-inl.h"

#if HWY_ONCE
namespace sluice::backend::cpu::linear::integer {

HWY_EXPORT(integer_linears);

bool has_integer_product(const Linear& op) {
  const MatrixFormat& format = op.w.format();
  const bool alike = op.up.count() == 0 || (op.up.format().storage == format.storage &&
                                            op.up.format().group_size == format.group_size);
  return alike && format.scale_type != ScaleType::none && format.storage != Storage::fp8;
}

void run_integer_linears(Context& context, std::span<const Linear> ops) {
  if (context.isa() == Isa::avxvnni) return run_avx_vnni(context, ops);
  SLUICE_DISPATCH(context, integer_linears)(context, ops);
}

}  // namespace sluice::backend::cpu::linear::integer
#endif
