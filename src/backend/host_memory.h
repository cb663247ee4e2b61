// What backends that compute in host memory share.
#pragma once

#include "sluice/ops/backend.h"

namespace sluice::backend {

// Aligned to 64 bytes; throws if no memory is left.
ops::Buffer allocate_host(std::size_t bytes);

class HostBackend : public ops::Backend {
 public:
  void upload(void* to, const void* from, std::size_t bytes) final;
  void download(void* to, const void* from, std::size_t bytes) final;
  void copy(void* to, const void* from, std::size_t bytes) final { upload(to, from, bytes); }
  void clear(void* to, std::size_t bytes) final;
  void synchronize() final {}
  ops::Rates measure_rates(std::uint64_t memory) override;

 protected:
  ops::Buffer allocate_block(std::size_t bytes) final { return allocate_host(bytes); }
  std::unique_ptr<ops::GrowingBuffer> reserve_range(std::size_t most) final;
};

}  // namespace sluice::backend
