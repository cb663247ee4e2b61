// sm_90a: matrix products of a warpgroup (wgmma).
#pragma once

#include "backend/cuda/device/hopper.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
namespace sluice::backend::cuda {

// The wgmma descriptor of rows of 128 bytes in swizzled groups of eight, the first at a multiple of 1024
// bytes.
__device__ __forceinline__ std::uint64_t describe_rows(const void* rows) {
  constexpr std::uint64_t kGroupStride = 1024 >> 4;
  constexpr std::uint64_t kSwizzle128 = 1;
  return (shared_address(rows) & 0x3ffff) >> 4 | 1ull << 16 | kGroupStride << 32 | kSwizzle128 << 62;
}

__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void close_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kOpen>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kOpen) : "memory");
}
// For the end: also keeps the compiler from reading the sums before they are complete.
template <int kCount>
__device__ __forceinline__ void wait_for_sums(float (&sums)[kCount]) {
  wait_for_products<0>();
#pragma unroll
  for (float& sum : sums) asm volatile("" : "+f"(sum)::"memory");
}

// Sums as operands of an instruction, and the names of these operands in its text.
#define SLUICE_SUMS_8(i)                                                                     \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), \
      "+f"(sums[i + 5]), "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define SLUICE_SUMS_16(i) SLUICE_SUMS_8(i), SLUICE_SUMS_8(i + 8)
#define SLUICE_SUMS_32(i) SLUICE_SUMS_16(i), SLUICE_SUMS_16(i + 16)
#define SLUICE_SUMS_64(i) SLUICE_SUMS_32(i), SLUICE_SUMS_32(i + 32)
#define SLUICE_SUMS_128(i) SLUICE_SUMS_64(i), SLUICE_SUMS_64(i + 64)
#define SLUICE_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define SLUICE_NAMES_16 SLUICE_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define SLUICE_NAMES_32 \
  SLUICE_NAMES_16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SLUICE_NAMES_64                                                              \
  SLUICE_NAMES_32                                                                    \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SLUICE_NAMES_128                                                                         \
  SLUICE_NAMES_64                                                                                \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"             \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"             \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// sums[64 x N] = (keep ? sums : 0) + a[64 x 16] b[N x 16]T. The lanes of warp w hold rows 16w to 16w + 15:
// lane l has columns 8g + l % 4 * 2 and the next one, of row l / 4 at sums[4g] and of the row 8 below at
// sums[4g + 2].
__device__ __forceinline__ void multiply_64(float (&sums)[32], std::uint64_t a, std::uint64_t b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SLUICE_NAMES_32
      "}, %32, %33, p, 1, 1, 0, 0;\n"
      "}\n"
      : SLUICE_SUMS_32(0)
      : "l"(a), "l"(b), "r"(keep));
}
__device__ __forceinline__ void multiply_64(float (&sums)[64], std::uint64_t a, std::uint64_t b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SLUICE_NAMES_64
      "}, %64, %65, p, 1, 1, 0, 0;\n"
      "}\n"
      : SLUICE_SUMS_64(0)
      : "l"(a), "l"(b), "r"(keep));
}
__device__ __forceinline__ void multiply_64(float (&sums)[128], std::uint64_t a, std::uint64_t b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" SLUICE_NAMES_128
      "}, %128, %129, p, 1, 1, 0, 0;\n"
      "}\n"
      : SLUICE_SUMS_128(0)
      : "l"(a), "l"(b), "r"(keep));
}

// sums[64 x N] += a[64 x 16] b[N x 16]T for N = 16, 32, 64 and 128, with the left operand in registers, for
// weights that are unpacked there. Operands are distributed as in mma.sync: lane l of warp w holds `a` at
// rows 16w + l / 4 and 8 below, columns 2 (l % 4) and 8 to the right, two neighbours each; it holds the sums
// of the same rows at columns 8g + l % 4 * 2 and the next one, at sums[4g] and sums[4g + 2].
__device__ __forceinline__ void multiply_registers(float (&sums)[8], const std::uint32_t* a,
                                                   std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {" SLUICE_NAMES_8
               "}, {%8, %9, %10, %11}, %12, 1, 1, 1, 0;"
               : SLUICE_SUMS_8(0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ __forceinline__ void multiply_registers(float (&sums)[16], const std::uint32_t* a,
                                                   std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" SLUICE_NAMES_16
               "}, {%16, %17, %18, %19}, %20, 1, 1, 1, 0;"
               : SLUICE_SUMS_16(0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ __forceinline__ void multiply_registers(float (&sums)[32], const std::uint32_t* a,
                                                   std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SLUICE_NAMES_32
               "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
               : SLUICE_SUMS_32(0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ __forceinline__ void multiply_registers(float (&sums)[64], const std::uint32_t* a,
                                                   std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SLUICE_NAMES_64
               "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 0;"
               : SLUICE_SUMS_64(0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// The same with the right operand stored as b[16 x N].
__device__ __forceinline__ void multiply_registers_transposed(float (&sums)[64], const std::uint32_t* a,
                                                              std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SLUICE_NAMES_64
               "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
               : SLUICE_SUMS_64(0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ __forceinline__ void multiply_registers_transposed(float (&sums)[128], const std::uint32_t* a,
                                                              std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" SLUICE_NAMES_128
               "}, {%128, %129, %130, %131}, %132, 1, 1, 1, 1;"
               : SLUICE_SUMS_128(0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#undef SLUICE_NAMES_128
#undef SLUICE_NAMES_64
#undef SLUICE_NAMES_32
#undef SLUICE_NAMES_16
#undef SLUICE_NAMES_8
#undef SLUICE_SUMS_128
#undef SLUICE_SUMS_64
#undef SLUICE_SUMS_32
#undef SLUICE_SUMS_16
#undef SLUICE_SUMS_8

}  // namespace sluice::backend::cuda
#endif
