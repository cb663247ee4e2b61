# The flags every target of the project shares.
add_library(sluice_flags INTERFACE)
target_compile_options(sluice_flags INTERFACE -Wall -Wextra $<$<BOOL:${SLUICE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false positives of these inside libstdc++ when it inlines deeply; the last one whenever strings are concatenated.
  target_compile_options(sluice_flags INTERFACE -Wno-error=maybe-uninitialized -Wno-error=array-bounds
                                                -Wno-error=stringop-overflow -Wno-restrict)
  if(SLUICE_NATIVE)  # and of this one in its own AVX-512 headers
    target_compile_options(sluice_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Collecting garbage later saves a tenth of GCC's time and costs half a gigabyte per process.
  target_compile_options(sluice_flags INTERFACE --param=ggc-min-expand=200 --param=ggc-min-heapsize=524288)
endif()
# The bits of a kernel must not depend on which loops the compiler contracts.
target_compile_options(sluice_flags INTERFACE -ffp-contract=off)
if(SLUICE_SANITIZE)
  target_compile_options(sluice_flags INTERFACE -fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  # AddressSanitizer reports accesses through null pointers and outside of objects; compiling takes a ninth less so.
  if(SLUICE_SANITIZE MATCHES "address.*undefined")
    target_compile_options(sluice_flags INTERFACE -fno-sanitize=null,object-size)
  endif()
  target_link_options(sluice_flags INTERFACE -fsanitize=${SLUICE_SANITIZE})
endif()
