// Two microbenchmarks: one reads memory that no cache holds, one multiplies registers on the tensor cores
// (with mma.sync; on Hopper, wgmma reaches about 1.5 times that).
#include <algorithm>

#include "backend/cuda/runtime/launch.h"
#include "backend/cuda/runtime/rates.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda {

namespace {

constexpr std::size_t kBytes = std::size_t{2} << 30;
constexpr std::size_t kLeastBytes = std::size_t{16} << 20;  // with less, measuring is pointless
constexpr int kProducts = 4096;

__global__ void read_all(const uint4* from, std::size_t count, unsigned* sink) {
  wait_for_inputs();
  unsigned all = 0;
  const std::size_t step = to_size(gridDim.x) * blockDim.x;
  std::size_t i = to_size(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * step < count; i += 4 * step) {
    uint4 part[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) part[j] = __ldcs(from + i + j * step);
#pragma unroll
    for (int j = 0; j < 4; ++j) all ^= part[j].x ^ part[j].y ^ part[j].z ^ part[j].w;
  }
  for (; i < count; i += step) all ^= from[i].x;
  if (all == 0x12345678u) *sink = all;  // keeps the compiler from removing the loads
}

__global__ void multiply(float* sink) {
  wait_for_inputs();
  constexpr int kChains = 4;
  float sum[kChains][4] = {};
  unsigned a[4];
  unsigned b[2];
  for (unsigned& x : a) x = 0x3f803f80u + threadIdx.x;
  for (unsigned& x : b) x = 0x3f803f80u + threadIdx.x * 3;
  for (int i = 0; i < kProducts; ++i)
#pragma unroll
    for (auto& c : sum)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
          "{%0,%1,%2,%3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  float all = 0;
  for (const auto& c : sum) all += c[0] + c[1] + c[2] + c[3];
  if (all == -1) *sink = all;
}

// The best of several runs, timed by events.
template <class F>
double best_seconds(Context& context, F&& work) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check(cudaEventCreate(&begin), "making an event");
  check(cudaEventCreate(&end), "making an event");
  float best = 1e30f;
  for (int i = 0; i < 6; ++i) {
    check(cudaEventRecord(begin, context.stream()), "timing");
    work();
    check(cudaEventRecord(end, context.stream()), "timing");
    check(cudaEventSynchronize(end), "timing");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "timing");
    if (i > 0) best = std::min(best, milliseconds);  // the first warms up
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return static_cast<double>(best) * 1e-3;
}

}  // namespace

ops::Rates measure_rates(Context& context, std::uint64_t memory_limit) {
  ops::Rates rates;
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "reading the free memory");
  const std::size_t most = memory_limit > 0 ? std::max(memory_limit, kLeastBytes) : kBytes;
  const std::size_t bytes = std::min({kBytes, most, free / 2}) / 4096 * 4096;
  const ops::Buffer memory = allocate_device(bytes);
  check(cudaMemsetAsync(memory.data(), 0x5a, bytes, context.stream()), "filling memory");
  const auto blocks = to_unsigned(context.device().multiprocessors);
  const auto* from = static_cast<const uint4*>(memory.data());
  auto* sink = reinterpret_cast<unsigned*>(context.scratch(256));
  rates.read_bytes_per_second =
      static_cast<double>(bytes) / best_seconds(context, [&] {
        launch(context, read_all, {dim3(blocks * 4), dim3(512)}, from, bytes / sizeof(uint4), sink);
      });
  const double products = 2.0 * 16 * 8 * 16 * 4 * kProducts * 8 * 2 * blocks;
  auto* float_sink = reinterpret_cast<float*>(sink);
  rates.flops_per_second = products / best_seconds(context, [&] {
                             launch(context, multiply, {dim3(blocks * 2), dim3(256)}, float_sink);
                           });
  return rates;
}

}  // namespace sluice::backend::cuda
