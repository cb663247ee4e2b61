// Copies host memory to the device. Large pieces go through pinned buffers filled by several threads: a copy
// directly from a mapped file is limited by one thread's page faults.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "base/thread_pool.h"

namespace sluice::backend::cuda {

class Transfer {
 public:
  Transfer();
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Ordered on the stream; `from` may change once it returns.
  void upload(cudaStream_t stream, void* to, const void* from, std::size_t bytes);

 private:
  struct Lane;
  void start();
  void through_lanes(cudaStream_t stream, std::byte* to, const std::byte* from, std::size_t bytes);

  std::unique_ptr<ThreadPool> pool_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace sluice::backend::cuda
