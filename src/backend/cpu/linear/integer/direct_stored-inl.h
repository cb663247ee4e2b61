// The products of a few rows of x with codes of 2, 4 or 8 bits, read from where they lie. Included once per
// instruction set.
#if defined(SLUICE_BACKEND_CPU_INTEGER_DIRECT_STORED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_DIRECT_STORED_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_DIRECT_STORED_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_DIRECT_STORED_INL_H_
#endif

#include "backend/cpu/linear/integer/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

template <int kBits>
const DirectProduct& stored_product_of(std::int64_t group_size) {
  if (group_size == 32) return kProductOf<SlotCodes<kBits, 32>>;
  if (group_size == 64) return kProductOf<SlotCodes<kBits, 64>>;
  return kProductOf<SlotCodes<kBits, 128>>;
}

const DirectProduct& stored_product(const MatrixFormat& format) {
  switch (format.storage) {
#if HWY_ARCH_X86
    case Storage::affine2:
      return format.group_size == 64 ? kProductOf<SlotCodes<2, 64>> : kProductOf<SlotCodes<2, 128>>;
#endif
    case Storage::affine4:
      return stored_product_of<4>(format.group_size);
    case Storage::affine8:
      return stored_product_of<8>(format.group_size);
    default:
#if HWY_TARGET == HWY_AVX2
      if (format.group_size == 16) return kProductOf<SlotCodes<4, 16, Levels::e2m1>>;
#endif
      return kProductOf<SlotCodes<4, 32, Levels::e2m1>>;
  }
}

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
