// Included before the functions that use VNNI, once per instruction set.
#if HWY_TARGET == HWY_AVX3_DL && HWY_MAJOR == 1 && HWY_MINOR == 0 && HWY_PATCH < 4
// These versions of Highway use instructions of this target without enabling them all.
#undef HWY_TARGET_STR
#define HWY_TARGET_STR \
  HWY_TARGET_STR_AVX3  \
  ",avx512vnni,vpclmulqdq,avx512vbmi,avx512vbmi2,vaes,avxvnni,avx512bitalg,avx512vpopcntdq"
#endif
