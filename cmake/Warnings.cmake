# The flags every target of the project shares.
add_library(sluice_flags INTERFACE)
target_compile_options(sluice_flags INTERFACE -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false positives of these inside libstdc++ when it inlines deeply.
  target_compile_options(sluice_flags INTERFACE -Wno-error=maybe-uninitialized -Wno-error=array-bounds
                                                -Wno-error=stringop-overflow -Wno-error=restrict)
endif()
# A kernel's bits must not depend on which loop the compiler chose to contract.
target_compile_options(sluice_flags INTERFACE -ffp-contract=off)
if(SLUICE_SANITIZE)
  target_compile_options(sluice_flags INTERFACE -fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  target_link_options(sluice_flags INTERFACE -fsanitize=${SLUICE_SANITIZE})
endif()
