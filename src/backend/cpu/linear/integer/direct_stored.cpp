// The products of a few rows of x with codes that are read from where they lie.
#define HWY_WANT_AVX3_DL  // for VNNI
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS 0xFFF007FLL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/linear/integer/direct_stored.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "backend/cpu/linear/integer/direct_stored-inl.h"
