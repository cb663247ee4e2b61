# The CUDA backend. AUTO builds it if there are a CUDA compiler and a GPU; otherwise a stub reports that it is missing. For pip a
# compiler is enough if there are many cores: container images and login nodes install for GPUs that are elsewhere.
set(SLUICE_CUDA AUTO CACHE STRING "Build the CUDA backend: ON, OFF, or AUTO (where nvcc and a GPU are)")
set(SLUICE_CUDA_VERSION 12.4)
if(SLUICE_CUDA STREQUAL "AUTO")
  include(CheckLanguage)
  check_language(CUDA)
  find_package(CUDAToolkit ${SLUICE_CUDA_VERSION} QUIET)
  cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
  if(NOT CMAKE_CUDA_COMPILER OR NOT CUDAToolkit_FOUND)
    set(SLUICE_WITH_CUDA OFF)
  elseif(EXISTS /dev/nvidiactl OR (SKBUILD AND cores GREATER_EQUAL 8))
    set(SLUICE_WITH_CUDA ON)
  else()
    message(NOTICE "nvcc is here and no GPU: -D SLUICE_CUDA=ON builds for all kinds of them, about 17 minutes of one core.")
    set(SLUICE_WITH_CUDA OFF)
  endif()
else()
  set(SLUICE_WITH_CUDA ${SLUICE_CUDA})
endif()
if(NOT SLUICE_WITH_CUDA)
  return()
endif()

# If pip finds a GPU, it builds for that GPU, like a native build: compiling for all architectures takes 3.5 times as long.
set(SLUICE_OWN_GPU ${SLUICE_NATIVE})
if(SKBUILD AND SLUICE_CUDA STREQUAL "AUTO")
  set(SLUICE_OWN_GPU ON)
endif()
# 90a, not 90: Hopper's matrix instructions exist only under that name.
if(SLUICE_OWN_GPU AND NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE own ERROR_QUIET)
  if(own MATCHES "^([0-9]+)\\.([0-9])")
    set(CMAKE_CUDA_ARCHITECTURES ${CMAKE_MATCH_1}${CMAKE_MATCH_2}-real)
    string(REPLACE 90-real 90a-real CMAKE_CUDA_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES})
  endif()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90a-real 120)
endif()
enable_language(CUDA)
find_package(CUDAToolkit ${SLUICE_CUDA_VERSION} REQUIRED)
# CMake 3.25 does not know nvcc's C++20 mode; with the flags given here, it does not need to.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
add_library(sluice_cuda_flags INTERFACE)
target_compile_options(
  sluice_cuda_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${SLUICE_WERROR}>>:--Werror all-warnings>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${SLUICE_WERROR}>>:-Werror>)
