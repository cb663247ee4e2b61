# Everything comes from the distribution's packages; ./demo and ./test install what is missing.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(XXHASH REQUIRED libxxhash)  # its header alone
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(URING IMPORTED_TARGET liburing)  # optional: threads read experts without it
if(SLUICE_TESTS)
  find_package(GTest REQUIRED)
endif()
if(SLUICE_BENCH)
  find_package(benchmark REQUIRED)
endif()
