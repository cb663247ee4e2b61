// Where routers keep a token's keys: one warp a token, in shared memory, or in scratch where a row is too
// long.
#pragma once

#include "backend/cuda/launch.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

struct RouterMemory {
  std::byte* scratch = nullptr;  // null: shared memory
  long long token_bytes = 0;
  int block_tokens = 1;

  // For kernels whose dynamic shared memory is `shared`; the token's part of the memory.
  __device__ __forceinline__ std::byte* of(long long token, std::byte* shared) const {
    return scratch != nullptr ? scratch + token * token_bytes : shared + threadIdx.x / kWarp * token_bytes;
  }
};

struct RouterGrid {
  RouterMemory memory;
  Grid grid;

  RouterGrid(Context& context, long long tokens, long long bytes) {
    constexpr long long kSharedBytes = 48 * 1024;
    constexpr int kMaxTokens = 4;
    memory.token_bytes = divide_up<long long>(bytes, 16) * 16;
    if (memory.token_bytes > kSharedBytes)
      memory.scratch = context.scratch(static_cast<std::size_t>(tokens * memory.token_bytes));
    else
      while (memory.block_tokens < kMaxTokens && memory.block_tokens < tokens &&
             2 * memory.block_tokens * memory.token_bytes <= kSharedBytes)
        memory.block_tokens *= 2;
    grid.blocks = dim3(static_cast<unsigned>(divide_up<long long>(tokens, memory.block_tokens)));
    grid.threads = dim3(static_cast<unsigned>(memory.block_tokens * kWarp));
    if (memory.scratch == nullptr)
      grid.shared_bytes = static_cast<std::size_t>(memory.block_tokens * memory.token_bytes);
  }
};

}  // namespace sluice::backend::cuda
