# The flags every target of the project shares.
add_library(sluice_flags INTERFACE)
target_compile_options(sluice_flags INTERFACE -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false positives of these inside libstdc++ when it inlines deeply; of the last, whenever strings are
  # joined.
  target_compile_options(sluice_flags INTERFACE -Wno-error=maybe-uninitialized -Wno-error=array-bounds
                                                -Wno-error=stringop-overflow -Wno-restrict)
endif()
# A kernel's bits must not depend on which loop the compiler chose to contract.
target_compile_options(sluice_flags INTERFACE -ffp-contract=off)
if(SLUICE_SANITIZE)
  target_compile_options(sluice_flags INTERFACE -fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  target_link_options(sluice_flags INTERFACE -fsanitize=${SLUICE_SANITIZE})
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # The oldest machine served; kernels choose better instructions at run time.
  target_compile_options(sluice_flags INTERFACE -march=x86-64-v2 -maes -mpclmul)
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  # What Highway's pragma says of NEON: constructors that the compiler writes lie outside the pragma, and GCC inlines
  # none of one target into another.
  target_compile_options(sluice_flags INTERFACE -march=armv8-a+crypto)
endif()
# Highway compiles every kernel for SSE4, AVX2 and AVX-512, or NEON; the mask leaves out what has no kernel of its own
# yet and would only add build time: AVX3_DL and later, and SVE, whose bits moved between versions of Highway.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(sluice_flags INTERFACE HWY_DISABLED_TARGETS=0xF0000FFLL)
else()
  target_compile_definitions(sluice_flags INTERFACE HWY_DISABLED_TARGETS=0xFFF00FFLL)
endif()
