# The instructions that the compiler may use everywhere, and the instruction sets that kernels are compiled for.

# The highest x86-64 level of this machine, and the definition that keeps Highway from compiling kernels for other
# instruction sets: nothing above the level, or AVX3_DL as the baseline. The latter is not left to Highway, which in some
# versions requires AVX-VNNI for it, an extension of AVX2 that some processors with AVX3_DL lack.
function(sluice_own_level result definition)
  set(${result} x86-64-v2 PARENT_SCOPE)
  set(${definition} PARENT_SCOPE)
  file(STRINGS /proc/cpuinfo line REGEX "^flags" LIMIT_COUNT 1)
  string(REGEX MATCHALL "[a-z0-9_]+" flags "${line}")
  foreach(name avx avx2 bmi1 bmi2 f16c fma abm movbe)
    if(NOT name IN_LIST flags)
      return()
    endif()
  endforeach()
  set(${result} x86-64-v3 PARENT_SCOPE)
  if(NOT avx512f IN_LIST flags)
    set(${definition} HWY_COMPILE_ONLY_STATIC PARENT_SCOPE)
  endif()
  foreach(name avx512f avx512bw avx512cd avx512dq avx512vl)
    if(NOT name IN_LIST flags)
      return()
    endif()
  endforeach()
  set(${result} x86-64-v4 PARENT_SCOPE)
  set(${definition} HWY_COMPILE_ONLY_STATIC PARENT_SCOPE)
  foreach(name vaes vpclmulqdq avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg avx512_vpopcntdq)
    if(NOT name IN_LIST flags)
      return()
    endif()
  endforeach()
  set(${definition} "HWY_BASELINE_TARGETS=(HWY_AVX3_DL|HWY_AVX3|HWY_AVX2|HWY_SSE4|HWY_SSSE3)" PARENT_SCOPE)
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # The oldest supported machine; kernels choose better instructions at run time. A native build has kernels for this machine's
  # instructions alone.
  set(level x86-64-v2)
  set(targets)
  if(SLUICE_NATIVE)
    sluice_own_level(level targets)
  endif()
  target_compile_definitions(sluice_flags INTERFACE ${targets})
  target_compile_options(sluice_flags INTERFACE -march=${level} -maes -mpclmul)
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  # The same flags as Highway's pragma for NEON: constructors that the compiler generates are outside the pragma, and GCC does not
  # inline functions of one target into another.
  target_compile_options(sluice_flags INTERFACE -march=armv8-a+crypto)
endif()
# Highway compiles every kernel for SSE4, AVX2 and AVX-512, or NEON; the mask leaves out targets without kernels of their own, which
# would only add build time: AVX3_DL and later, and SVE, whose bits changed between versions of Highway.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(sluice_flags INTERFACE HWY_DISABLED_TARGETS=0xF0000FFLL)
else()
  target_compile_definitions(sluice_flags INTERFACE HWY_DISABLED_TARGETS=0xFFF00FFLL)
endif()
if(SLUICE_EMULATE_AMX)
  target_compile_definitions(sluice_flags INTERFACE SLUICE_EMULATE_AMX=1)
endif()
