// The products of a few rows of x with codes of any width, moved into bytes or words. Included once per
// instruction set.
#if defined(SLUICE_BACKEND_CPU_INTEGER_DIRECT_MOVED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_DIRECT_MOVED_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_DIRECT_MOVED_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_DIRECT_MOVED_INL_H_
#endif

#include "backend/cpu/linear/integer/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

template <int kBits>
const DirectProduct& moved_product_of(std::int64_t group_size) {
  if (group_size == 32) return kProductOf<AnyCodes<kBits, 32>>;
  if (group_size == 64) return kProductOf<AnyCodes<kBits, 64>>;
  return kProductOf<AnyCodes<kBits, 128>>;
}

const DirectProduct& moved_product(const MatrixFormat& format) {
  switch (format.storage) {
    case Storage::affine2:
#if HWY_ARCH_X86
      return kProductOf<AnyCodes<2, 32>>;
#else
      return moved_product_of<2>(format.group_size);
#endif
    case Storage::affine3:
      return moved_product_of<3>(format.group_size);
    case Storage::affine5:
      return moved_product_of<5>(format.group_size);
    case Storage::affine6:
      return moved_product_of<6>(format.group_size);
    default:
      return kProductOf<AnyCodes<4, 16, Levels::e2m1>>;
  }
}

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
