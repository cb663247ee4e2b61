#include "backend/cuda/runtime/gather.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kMostParts = 120;             // per launch: they are a kernel parameter of up to 4 KiB
constexpr std::size_t kBlockBytes = 16384;  // per block and step
constexpr std::size_t kMostBlocks = 64;     // per part
constexpr std::size_t kLandingBytes = std::size_t{8} << 20;

struct Part {
  std::byte* device;
  std::size_t at;  // in the host's memory
  std::size_t bytes;
};
struct Parts {
  Part part[kMostParts];
};

// Several loads are in flight before the first store: loads from the host take microseconds.
template <class T>
__device__ __forceinline__ void copy_as(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr int kAtOnce = 4;
  T* const target = reinterpret_cast<T*>(to);
  const T* const source = reinterpret_cast<const T*>(from);
  const std::size_t count = bytes / sizeof(T);
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  std::size_t i = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; i + (kAtOnce - 1) * stride < count; i += kAtOnce * stride) {
    T values[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) values[j] = source[i + j * stride];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) target[i + j * stride] = values[j];
  }
  for (; i < count; i += stride) target[i] = source[i];
}

// Grid: blocks of a part, parts.
template <bool kToDevice>
__global__ void __launch_bounds__(kThreads)
    copy_parts_kernel(const __grid_constant__ Parts parts, std::byte* host) {
  wait_for_inputs();
  const Part& part = parts.part[blockIdx.y];
  std::byte* const there = host + part.at;
  std::byte* const to = kToDevice ? part.device : there;
  const std::byte* const from = kToDevice ? there : part.device;
  const std::size_t odd =
      reinterpret_cast<std::size_t>(to) | reinterpret_cast<std::size_t>(from) | part.bytes;
  if (odd % sizeof(uint4) == 0)
    copy_as<uint4>(to, from, part.bytes);
  else if (odd % sizeof(unsigned) == 0)
    copy_as<unsigned>(to, from, part.bytes);
  else
    copy_as<unsigned char>(to, from, part.bytes);
}

// `host` must be pinned.
template <bool kToDevice>
void copy_parts(Context& context, std::span<const ops::MemoryPart> all, std::byte* host) {
  std::size_t at = 0;
  while (!all.empty()) {
    const auto now = all.first(std::min<std::size_t>(all.size(), kMostParts));
    all = all.subspan(now.size());
    Parts parts{};
    std::size_t longest = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      parts.part[i] = {static_cast<std::byte*>(now[i].data), at, now[i].bytes};
      at += now[i].bytes;
      longest = std::max(longest, now[i].bytes);
    }
    if (longest == 0) continue;
    const std::size_t blocks = std::min(divide_up(longest, kBlockBytes), kMostBlocks);
    const Grid grid{dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(now.size())), dim3(kThreads)};
    launch(context, copy_parts_kernel<kToDevice>, grid, parts, host);
  }
}

bool pinned(const void* memory) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, memory), "querying a pointer");
  return attributes.type == cudaMemoryTypeHost;
}

}  // namespace

// Calls move(parts, at, bytes) with parts that together fit the staging buffer; they begin at offset `at` on
// the host.
template <class Move>
void Gather::in_steps(std::span<const ops::MemoryPart> parts, Move&& move) {
  if (landing_.bytes() == 0) landing_ = allocate_pinned(kLandingBytes);
  std::vector<ops::MemoryPart> step;
  std::size_t at = 0;
  std::size_t bytes = 0;
  const auto flush = [&] {
    if (bytes > 0) move(step, at, bytes);
    at += bytes;
    bytes = 0;
    step.clear();
  };
  for (ops::MemoryPart part : parts)
    while (part.bytes > 0) {
      const std::size_t now = std::min(part.bytes, kLandingBytes - bytes);
      step.push_back({part.data, now});
      part = {static_cast<std::byte*>(part.data) + now, part.bytes - now};
      bytes += now;
      if (bytes == kLandingBytes) flush();
    }
  flush();
}

void Gather::from_device(Context& context, void* to, std::span<const ops::MemoryPart> from) {
  auto* const host = static_cast<std::byte*>(to);
  if (pinned(to)) return copy_parts<false>(context, from, host);
  in_steps(from, [&](std::span<const ops::MemoryPart> step, std::size_t at, std::size_t bytes) {
    copy_parts<false>(context, step, static_cast<std::byte*>(landing_.data()));
    check(cudaStreamSynchronize(context.stream()), "copying from the device");
    std::memcpy(host + at, landing_.data(), bytes);
  });
}

void Gather::to_device(Context& context, std::span<const ops::MemoryPart> to, const void* from) {
  const auto* const host = static_cast<const std::byte*>(from);
  if (pinned(from)) return copy_parts<true>(context, to, const_cast<std::byte*>(host));
  in_steps(to, [&](std::span<const ops::MemoryPart> step, std::size_t at, std::size_t bytes) {
    check(cudaStreamSynchronize(context.stream()), "copying to the device");  // the buffer may be in use
    std::memcpy(landing_.data(), host + at, bytes);
    copy_parts<true>(context, step, static_cast<std::byte*>(landing_.data()));
  });
}

}  // namespace sluice::backend::cuda
